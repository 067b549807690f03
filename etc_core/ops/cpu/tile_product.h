// The one product everything dense is made of, on the calling thread.
#pragma once

#include <cstdint>

namespace etc::ops::cpu {

enum class Transpose : bool { no, yes };

// y (= or +=) a·b for row-major matrices whose rows lie lda, ldb, ldy floats apart.
//   a [m, k], or [k, m] with Transpose::yes;  b [k, n];  y [m, n]
// Runs on one thread whatever the caller is in. With equal m, n, k the bits of a row of y depend on that row of a and
// on b only, not on the row's position (tests/core/ops/linear_test.cpp looks at every position).
void tile_product(Transpose transpose_a, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                  std::int64_t lda, const float* b, std::int64_t ldb, bool add, float* y, std::int64_t ldy);

}  // namespace etc::ops::cpu
