#include "etc_core/base/sums.h"

namespace etc {

double pairwise_sum(std::span<const double> values) {
  if (values.empty()) return 0;
  if (values.size() == 1) return values[0];
  std::size_t half = 1;  // the largest power of two below the number of terms: the tree of neighbours
  while (2 * half < values.size()) half *= 2;
  return pairwise_sum(values.first(half)) + pairwise_sum(values.subspan(half));
}

}  // namespace etc
