// The middle of measured values: what a moment in which the machine did something else does not move.
#pragma once

#include <algorithm>
#include <vector>

namespace etc::bench {

// Of at least one value; of an even number the larger of the two in the middle.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace etc::bench
