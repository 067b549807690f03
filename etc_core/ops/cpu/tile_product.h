// The matrix product (GEMM) of one tile, used for dense layers and dx, on the calling thread.
#pragma once

#include <cstdint>

namespace etc::ops::cpu {

// A row-major matrix whose rows lie `stride` floats apart.
struct MatrixView {
  const float* data;
  std::int64_t stride;
};
struct MutableMatrixView {
  float* data;
  std::int64_t stride;
};

// y (= or, with `add`, +=) a·b.   a [m, k];  b [k, n];  y [m, n]
struct TileProduct {
  std::int64_t m, n, k;
  MatrixView a, b;
  MutableMatrixView y;
  bool add = false;
};

// Runs on one thread, also when called outside of a parallel loop. With equal m, n, k the bits of a row of y depend on
// that row of a and on b only, not on the row's position (tests/core/ops/linear_test.cpp checks every position).
void tile_product(const TileProduct& p);

}  // namespace etc::ops::cpu
