// The median of measured values, which is robust against single outliers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace etc {

// The middle value in sorted order; for an even number of values the mean of the two in the middle. Needs at least one
// value, and none may be nan. Cost: O(n).
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

}  // namespace etc
