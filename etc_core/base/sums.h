// Sums in a fixed order, used for norms.
#pragma once

#include <cstdint>
#include <span>

namespace etc {

// Sum of squares in double, in an order that depends on n alone.
double sum_of_squares(const float* values, std::int64_t n);

// ((a+b)+(c+d))+…: neighbours first, so the error grows with the logarithm of the number of terms.
double pairwise_sum(std::span<const double> values);

}  // namespace etc
