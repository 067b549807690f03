// The only file of the product that includes oneDNN.
//
// The engine uses the library's plain matrix product, which exists unchanged in versions 2 and 3. On tiles of 64 rows
// and 192 columns it runs at the rate of the matmul primitive on one large product (bench/matmul_bench.cpp), needs no
// weights in an opaque order and no cache of primitives, and its rows do not change with their position in the tile.
#include <omp.h>

#include <cstdlib>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>

#include "etc_core/base/cpu_features.h"
#include "etc_core/base/error.h"
#include "etc_core/base/not_copied.h"
#include "etc_core/ops/cpu/reduced_kernel.h"
#include "etc_core/ops/cpu/tile_product.h"
#include "etc_core/ops/library_versions.h"

namespace etc::ops::cpu {

namespace {

// oneDNN asks OpenMP how many threads the calling thread may use. Tiles are products of one thread (the parallel loop
// is around them, and a split of a sum would depend on the number of threads); the setting is the calling thread's own.
class LibraryThreads : NotCopied {
 public:
  explicit LibraryThreads(int count) : before_(omp_get_max_threads()), count_(count) {
    if (before_ != count_) omp_set_num_threads(count_);
  }
  ~LibraryThreads() {
    if (before_ != count_) omp_set_num_threads(before_);
  }

 private:
  int before_, count_;
};

}  // namespace

// The library's sgemm in its row-major form, with its return value checked: it refuses negative or too small strides.
void tile_product(const TileProduct& p) {
  const LibraryThreads one_thread(1);
  // y [m, n] = 1·a [m, k]·b [k, n] + (0 or 1)·y
  const dnnl_status_t status =
      dnnl_sgemm(p.transpose_a == Transpose::yes ? 'T' : 'N', 'N', p.m, p.n, p.k, 1.0f, p.a.data, p.a.stride, p.b.data,
                 p.b.stride, p.add ? 1.0f : 0.0f, p.y.data, p.y.stride);
  if (status != dnnl_success) {
    fail("linear", "oneDNN refused a product of m={}, n={}, k={}, lda={}, ldb={}, ldy={} (status {})", p.m, p.n, p.k,
         p.a.stride, p.b.stride, p.y.stride, static_cast<int>(status));
  }
}

namespace {

using Memory = dnnl::memory;

// A product [m, k] by [k, n], for messages.
struct Asked {
  const char* type;
  std::int64_t m, n, k;
};

// Runs body(); what the library throws becomes an Error that says what was asked of it, and of which machine.
template <typename Body>
auto asking_library(const Asked& asked, Body&& body) {
  try {
    return body();
  } catch (const dnnl::error& error) {
    const dnnl_version_t& version = *dnnl_version();
    fail("linear",
         "oneDNN {}.{}.{} refused a {} product of m={}, n={}, k={} on this processor ({}): {}, status {} (compute in "
         "fp32, or build with -DETC_ONEDNN=OFF)",
         version.major, version.minor, version.patch, asked.type, asked.m, asked.n, asked.k, instruction_set(),
         error.what(), static_cast<int>(error.status));
  }
}

// One engine for all kernels: it stands for the processor and holds nothing that belongs to one product.
const dnnl::engine& library_engine() {
  static const dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  return engine;
}

// What the library would do for these layouts. Versions 2 and 3 differ in how they are asked, not in what they answer.
dnnl::matmul::primitive_desc describe_product(const Memory::desc& x, const Memory::desc& weights,
                                              const Memory::desc& y) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);  // one primitive serves several threads
#if DNNL_VERSION_MAJOR >= 3
  return dnnl::matmul::primitive_desc(library_engine(), x, weights, y, attributes);
#else
  return dnnl::matmul::primitive_desc({x, weights, y}, attributes, library_engine());
#endif
}

Memory::data_type weight_type(ComputeType compute) {
  return compute == ComputeType::bf16 ? Memory::data_type::bf16 : Memory::data_type::s8;
}

// y [m, n] = x [m, k]·W [k, n] of one shape by the matmul primitive, W in the order the library chose for it. Immutable
// after construction, so threads share it; what a run writes besides y is its caller's scratchpad.
class LibraryKernel final : public ReducedKernel {
 public:
  LibraryKernel(ComputeType compute, std::int64_t m, std::int64_t n, std::int64_t k)
      : compute_(compute), m_(m), n_(n), k_(k) {
    const LibraryThreads one_thread(1);
    asking_library(asked(), [this] { prepare(); });
  }

  std::int64_t row_bytes() const override { return k_ * (compute_ == ComputeType::bf16 ? 2 : 1); }
  std::int64_t group_cols() const override { return n_; }
  // The library decides both sizes; a tile of fewer rows may want another order, which packs_like() finds out.
  std::int64_t packed_bytes() const override { return static_cast<std::int64_t>(weights_.get_size()); }
  std::int64_t scratch_bytes() const override { return static_cast<std::int64_t>(scratchpad_.get_size()); }
  bool packs_like(const ReducedKernel& other) const override {
    const auto* library = dynamic_cast<const LibraryKernel*>(&other);
    return library != nullptr && library->weights_ == weights_;
  }

  void pack(const void* w, void* packed) const override {
    const LibraryThreads one_thread(1);
    asking_library(asked(), [&] {
      dnnl::stream stream(library_engine());
      const Memory::desc plain({k_, n_}, weight_type(compute_), Memory::format_tag::ab);  // w as it comes: row-major
      Memory from(plain, library_engine(), const_cast<void*>(w)), to(weights_, library_engine(), packed);
      dnnl::reorder(from, to).execute(stream, from, to);
      stream.wait();
    });
  }

  void run(const void* x, const void* packed, std::int64_t, void* scratch, void* y) const override {
    const LibraryThreads one_thread(1);
    asking_library(asked(), [&] {
      thread_local const dnnl::stream stream(library_engine());  // once per thread, not once per tile
      const dnnl::engine& engine = library_engine();
      // Memory objects only point: x [m, k], packed, scratch, y [m, n] stay where the caller has them.
      matmul_.execute(stream, {{DNNL_ARG_SRC, Memory(x_, engine, const_cast<void*>(x))},
                               {DNNL_ARG_WEIGHTS, Memory(weights_, engine, const_cast<void*>(packed))},
                               {DNNL_ARG_SCRATCHPAD, Memory(scratchpad_, engine, scratch)},
                               {DNNL_ARG_DST, Memory(y_, engine, y)}});
    });
  }

 private:
  Asked asked() const { return {compute_type_name(compute_), m_, n_, k_}; }

  // format_tag::any for the weights alone: the library then picks an order, and pack() brings them into it.
  void prepare() {
    const bool bf16 = compute_ == ComputeType::bf16;
    x_ = Memory::desc({m_, k_}, bf16 ? Memory::data_type::bf16 : Memory::data_type::u8, Memory::format_tag::ab);
    y_ = Memory::desc({m_, n_}, bf16 ? Memory::data_type::f32 : Memory::data_type::s32, Memory::format_tag::ab);
    const auto description =
        describe_product(x_, Memory::desc({k_, n_}, weight_type(compute_), Memory::format_tag::any), y_);
    weights_ = description.weights_desc();
    scratchpad_ = description.scratchpad_desc();
    matmul_ = dnnl::matmul(description);
  }

  ComputeType compute_;
  std::int64_t m_, n_, k_;
  Memory::desc x_, y_, weights_, scratchpad_;  // [m, k], [m, n], the library's order of [k, n], bytes of one run
  dnnl::matmul matmul_;
};

}  // namespace

std::unique_ptr<ReducedKernel> library_kernel(ComputeType compute, std::int64_t m, std::int64_t n, std::int64_t k) {
  if (!cpu_has_avx512(compute)) return nullptr;
  return std::make_unique<LibraryKernel>(compute, m, n, k);
}

}  // namespace etc::ops::cpu

namespace etc::ops {

namespace {

// The instructions that the library takes, after its own limits: what an AVX2 processor computes, one with AVX-512 that
// is limited to AVX2 computes as well.
std::string instructions_taken() {
  const auto taken = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto has = [taken](dnnl::cpu_isa isa) {
    return (taken & static_cast<unsigned>(isa)) == static_cast<unsigned>(isa);  // each holds the bits of those below it
  };
  std::string text;
  if (has(dnnl::cpu_isa::sse41)) text = " SSE4.1";
  if (has(dnnl::cpu_isa::avx)) text = " AVX";
  if (has(dnnl::cpu_isa::avx2)) text = " AVX2";
  if (has(dnnl::cpu_isa::avx512_core)) text = " AVX-512";
  if (cpu_has_amx(ComputeType::bf16) && !has(dnnl::cpu_isa::avx512_core_amx)) text += " without AMX";
  return text;
}

}  // namespace

// Written into every run and compared when it is resumed: version, instructions, and settings that change bits.
std::string product_library() {
  const dnnl_version_t* version = dnnl_version();
  std::string text =
      fmt::format("oneDNN {}.{}.{}{}", version->major, version->minor, version->patch, instructions_taken());
  for (const char* name : {"ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE"}) {
    if (const char* value = std::getenv(name)) text += fmt::format(" {}={}", name, value);
  }
  return text;
}

}  // namespace etc::ops
