// The median of measured values, which is robust against single slow measurements.
#pragma once

#include <algorithm>
#include <vector>

namespace etc::bench {

// Needs at least one value; for an even number it returns the larger of the two middle values.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace etc::bench
