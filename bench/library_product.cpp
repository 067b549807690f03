#include "bench/library_product.h"

#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "etc_core/base/not_copied.h"
#include "etc_core/base/parallel.h"

namespace etc::bench {

namespace {

using Memory = dnnl::memory;

constexpr auto kFloat = Memory::data_type::f32;

// oneDNN asks OpenMP how many threads it may use. During a call this sets the engine's thread count; the engine itself
// calls oneDNN on one thread and leaves its own OpenMP setting behind.
class AllThreads : NotCopied {
 public:
  AllThreads() : before_(omp_get_max_threads()) { omp_set_num_threads(thread_count()); }
  ~AllThreads() { omp_set_num_threads(before_); }

 private:
  int before_;
};

// Versions 2 and 3 of oneDNN have different interfaces here.
dnnl::matmul::primitive_desc describe(const dnnl::engine& engine, const Memory::desc& a, const Memory::desc& b,
                                      const Memory::desc& c) {
#if DNNL_VERSION_MAJOR >= 3
  return dnnl::matmul::primitive_desc(engine, a, b, c);
#else
  return dnnl::matmul::primitive_desc({a, b, c}, engine);
#endif
}

}  // namespace

struct LibraryProduct::Primitive {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::memory::desc x, y;  // [m, k], [m, n]
  dnnl::memory weight;      // [k, n] in the library's preferred layout
  dnnl::matmul matmul;
};

LibraryProduct::LibraryProduct(std::int64_t m, std::int64_t n, std::int64_t k, const float* weight)
    : primitive_(std::make_unique<Primitive>()) {
  const AllThreads all_threads;
  Primitive& p = *primitive_;
  constexpr auto kRowMajor = Memory::format_tag::ab;
  p.x = Memory::desc({m, k}, kFloat, kRowMajor);
  p.y = Memory::desc({m, n}, kFloat, kRowMajor);
  // any: the library chooses the layout of W [k, n], which gives its best rate.
  const auto description = describe(p.engine, p.x, Memory::desc({k, n}, kFloat, Memory::format_tag::any), p.y);
  p.matmul = dnnl::matmul(description);
  Memory plain(Memory::desc({k, n}, kFloat, kRowMajor), p.engine, const_cast<float*>(weight));
  p.weight = Memory(description.weights_desc(), p.engine);
  dnnl::reorder(plain, p.weight).execute(p.stream, plain, p.weight);
  p.stream.wait();
}

LibraryProduct::~LibraryProduct() = default;

void LibraryProduct::run(const float* x, float* y) const {
  const AllThreads all_threads;
  Primitive& p = *primitive_;
  Memory source(p.x, p.engine, const_cast<float*>(x)), target(p.y, p.engine, y);
  p.matmul.execute(p.stream, {{DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, p.weight}, {DNNL_ARG_DST, target}});
  p.stream.wait();
}

struct BatchedLibraryProduct::Primitive {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::matmul matmul;
  std::unordered_map<int, dnnl::memory> arguments;  // a, b, c, which this object owns

  // Small normal numbers, because denormal ones slow the GEMM down on some processors.
  dnnl::memory filled(const dnnl::memory::desc& description) {
    dnnl::memory memory(description, engine);
    auto* values = static_cast<float*>(memory.get_data_handle());
    for (std::size_t i = 0; i < description.get_size() / sizeof(float); ++i) {
      values[i] = 1e-3f * static_cast<float>(i % 1000);
    }
    return memory;
  }
};

BatchedLibraryProduct::BatchedLibraryProduct(const BatchedShape& shape) : primitive_(std::make_unique<Primitive>()) {
  using Dims = Memory::dims;
  const AllThreads all_threads;
  const auto [batch, m, n, k, a_transposed, b_transposed] = shape;
  // Strides of a [batch, m, k] and b [batch, k, n]; a transposed operand has its last two strides exchanged.
  const Memory::desc a({batch, m, k}, kFloat, a_transposed ? Dims{m * k, 1, m} : Dims{m * k, k, 1});
  const Memory::desc b({batch, k, n}, kFloat, b_transposed ? Dims{n * k, 1, k} : Dims{n * k, n, 1});
  const Memory::desc c({batch, m, n}, kFloat, Dims{m * n, n, 1});
  Primitive& p = *primitive_;
  p.matmul = dnnl::matmul(describe(p.engine, a, b, c));
  p.arguments = {{DNNL_ARG_SRC, p.filled(a)}, {DNNL_ARG_WEIGHTS, p.filled(b)}, {DNNL_ARG_DST, p.filled(c)}};
}

BatchedLibraryProduct::~BatchedLibraryProduct() = default;

void BatchedLibraryProduct::run() {
  const AllThreads all_threads;
  primitive_->matmul.execute(primitive_->stream, primitive_->arguments);
  primitive_->stream.wait();
}

}  // namespace etc::bench
