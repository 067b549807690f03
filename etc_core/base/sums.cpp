#include "etc_core/base/sums.h"

namespace etc {

double sum_of_squares(const float* values, std::int64_t n) {
  constexpr std::int64_t kLanes = 8;  // independent sums, so that the compiler can use vectors
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane];
      lanes[lane] += value * value;
    }
  }
  for (std::int64_t lane = 0; i < n; ++i, ++lane) {
    const double value = values[i];
    lanes[lane] += value * value;
  }
  return pairwise_sum(lanes);
}

double pairwise_sum(std::span<const double> values) {
  if (values.empty()) return 0;
  if (values.size() == 1) return values[0];
  std::size_t half = 1;  // the largest power of two below the number of terms: the tree of neighbours
  while (2 * half < values.size()) half *= 2;
  return pairwise_sum(values.first(half)) + pairwise_sum(values.subspan(half));
}

}  // namespace etc
