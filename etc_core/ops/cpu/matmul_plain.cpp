// The products of the CPU backend without oneDNN (ETC_ONEDNN=OFF): plain loops, for machines that only check a GPU
// against the CPU. Instead of matmul_onednn.cpp, which is many times faster.
#include <algorithm>

#include "etc_core/ops/cpu/reduced_kernel.h"
#include "etc_core/ops/cpu/tile_product.h"
#include "etc_core/ops/library_versions.h"

namespace etc::ops::cpu {

void tile_product(Transpose transpose_a, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                  std::int64_t lda, const float* b, std::int64_t ldb, bool add, float* y, std::int64_t ldy) {
  for (std::int64_t i = 0; i < m; ++i) {
    float* row = y + i * ldy;  // [n]
    if (!add) std::fill(row, row + n, 0.0f);
    // Inner loop along the columns: they are neighbours in b and y, and the sums of a column stay in the order of k.
    for (std::int64_t inner = 0; inner < k; ++inner) {
      const float factor = transpose_a == Transpose::yes ? a[inner * lda + i] : a[i * lda + inner];
      for (std::int64_t j = 0; j < n; ++j) row[j] += factor * b[inner * ldb + j];
    }
  }
}

// bf16 then needs AMX, int8 runs on int8_pairs_cpu.cpp.
std::unique_ptr<ReducedKernel> library_kernel(ComputeType, std::int64_t, std::int64_t, std::int64_t) {
  return nullptr;
}

}  // namespace etc::ops::cpu

namespace etc::ops {

std::string product_library() {
  return "plain loops";
}

}  // namespace etc::ops
