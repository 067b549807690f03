// The only file that includes oneDNN: the product of one tile, and the choice between oneDNN and our own micro-kernel.
//
// It uses the library's plain sgemm, which exists unchanged in versions 2 and 3. With AVX-512, tiles of 64 rows and 192
// columns run at the rate of the matmul primitive on one large product (bench/matmul_bench.cpp), need no weights in an
// opaque layout and no cache of primitives, and the bits of a row do not depend on its position in the tile.
#include <omp.h>

#include <cstdlib>
#include <oneapi/dnnl/dnnl.hpp>

#include "etc_core/base/error.h"
#include "etc_core/base/not_copied.h"
#include "etc_core/ops/cpu/panel_kernel.h"
#include "etc_core/ops/cpu/reduced_product.h"
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

bool library_takes(dnnl::cpu_isa isa) {
  const auto taken = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  return (taken & static_cast<unsigned>(isa)) == static_cast<unsigned>(isa);  // includes the bits of smaller sets
}

}  // namespace

// With AVX2 our own micro-kernel is faster (strip_panels.cpp).
const PanelKernel& panel_kernel() {
  static const bool library = library_takes(dnnl::cpu_isa::avx512_core);
  return library ? kLibraryPanels : kStripPanels;
}

// The library's sgemm in its row-major form. Its return value is checked because it rejects negative or too small
// strides.
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

// Recorded in every run and compared when it is resumed: version, instruction set, and settings that affect bits.
std::string product_library() {
  if (cpu::fp32_in_parts()) return cpu::kProductsOfParts;
  if (&cpu::panel_kernel() == &cpu::kStripPanels) return cpu::kOwnProducts;
  const dnnl_version_t* version = dnnl_version();
  std::string text = fmt::format("oneDNN {}.{}.{} AVX-512", version->major, version->minor, version->patch);
  for (const char* name : {"ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE"}) {
    if (const char* value = std::getenv(name)) text += fmt::format(" {}={}", name, value);
  }
  return text;
}

// Measured with trainings of the tiny and the small WikiHop model.
std::int64_t product_library_bytes() {
  return cpu::fp32_in_parts() || &cpu::panel_kernel() == &cpu::kStripPanels ? 0 : 6'000'000;
}

}  // namespace etc::ops
