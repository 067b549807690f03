// Sums in a fixed order.
#pragma once

#include <span>

namespace etc {

// ((a+b)+(c+d))+…: neighbours first, so the error grows with the logarithm of the number of terms.
double pairwise_sum(std::span<const double> values);

}  // namespace etc
