// The only file of the product that includes oneDNN.
//
// The engine uses the library's plain matrix product, which exists unchanged in versions 2 and 3. On tiles of 64 rows
// and 192 columns it runs at the rate of the matmul primitive on one large product (bench/matmul_bench.cpp), needs no
// weights in an opaque order and no cache of primitives, and its rows do not change with their position in the tile.
#include <omp.h>

#include <cstdlib>
#include <oneapi/dnnl/dnnl.hpp>

#include "etc_core/base/cpu_features.h"
#include "etc_core/base/error.h"
#include "etc_core/base/not_copied.h"
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
  const dnnl_status_t status = dnnl_sgemm('N', 'N', p.m, p.n, p.k, 1.0f, p.a.data, p.a.stride, p.b.data, p.b.stride,
                                          p.add ? 1.0f : 0.0f, p.y.data, p.y.stride);
  if (status != dnnl_success) {
    fail("linear", "oneDNN refused a product of m={}, n={}, k={}, lda={}, ldb={}, ldy={} (status {})", p.m, p.n, p.k,
         p.a.stride, p.b.stride, p.y.stride, static_cast<int>(status));
  }
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
