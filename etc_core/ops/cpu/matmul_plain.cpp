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
    float* row = y + i * ldy;
    if (!add) std::fill(row, row + n, 0.0f);
    for (std::int64_t c = 0; c < k; ++c) {
      const float factor = transpose_a == Transpose::yes ? a[c * lda + i] : a[i * lda + c];
      for (std::int64_t j = 0; j < n; ++j) row[j] += factor * b[c * ldb + j];
    }
  }
}

std::unique_ptr<ReducedKernel> library_kernel(ComputeType, std::int64_t, std::int64_t, std::int64_t) {
  return nullptr;
}

}  // namespace etc::ops::cpu

namespace etc::ops {

std::string product_library() {
  return "plain loops";
}

}  // namespace etc::ops
