// The products of the CPU backend without oneDNN (ETC_ONEDNN=OFF): plain loops, for machines that only check a GPU
// against the CPU. Instead of matmul_onednn.cpp, which is many times faster.
#include <algorithm>

#include "etc_core/base/error.h"
#include "etc_core/ops/cpu/reduced_product.h"
#include "etc_core/ops/cpu/tile_product.h"

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

ReducedProduct::ReducedProduct(ComputeType compute, std::int64_t, std::int64_t n, std::int64_t k)
    : primitive_(nullptr), compute_(compute), n_(n), k_(k) {
  fail("linear", "{} products need oneDNN (configure with -DETC_ONEDNN=ON)", compute_type_name(compute));
}

std::int64_t ReducedProduct::packed_bytes() const {
  return 0;
}

std::int64_t ReducedProduct::scratch_bytes() const {
  return 0;
}

bool ReducedProduct::packs_like(const ReducedProduct&) const {
  return true;
}

void ReducedProduct::pack(const void*, void*) const {}

void ReducedProduct::run(const void*, const void*, void*, void*) const {}

}  // namespace etc::ops::cpu
