// The products of the CPU backend without oneDNN (ETC_ONEDNN=OFF): plain loops, for machines that only check a GPU
// against the CPU. Replaces matmul_onednn.cpp, which is many times faster.
#include <algorithm>

#include "etc_core/ops/cpu/tile_product.h"
#include "etc_core/ops/library_versions.h"

namespace etc::ops::cpu {

void tile_product(const TileProduct& p) {
  const auto [a, lda] = p.a;
  const auto [b, ldb] = p.b;
  for (std::int64_t i = 0; i < p.m; ++i) {
    float* row = p.y.data + i * p.y.stride;  // [n]
    if (!p.add) std::fill(row, row + p.n, 0.0f);
    // The inner loop runs along the columns, which are adjacent in b and y; a column is still summed in the order of k.
    for (std::int64_t inner = 0; inner < p.k; ++inner) {
      const float factor = a[i * lda + inner];
      for (std::int64_t j = 0; j < p.n; ++j) row[j] += factor * b[inner * ldb + j];
    }
  }
}

}  // namespace etc::ops::cpu

namespace etc::ops {

std::string product_library() {
  return "plain loops";
}

}  // namespace etc::ops
