// Squares for norms of gradients, weights and updates.
#pragma once

#include <cstdint>

namespace etc::ops::cpu {

inline constexpr std::int64_t kSquareSums = 8;  // partial sums: number i is added to sum i % kSquareSums

// Sum of squares in double. The order depends on n alone: partial sums in order, then pairwise_sum() of them.
double sum_of_squares(const float* values, std::int64_t n);

}  // namespace etc::ops::cpu
