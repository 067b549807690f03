#include "tasks/analyze/means.h"

#include <cmath>
#include <functional>

namespace etc::analyze {

namespace {

// Means [layers, heads, groups, columns] of sums over queries; counts [groups, columns], or [groups] for all columns.
std::vector<float> means_of(const std::vector<double>& sums, std::int64_t columns, const OperatorResults& results,
                            const std::function<std::int64_t(int group, std::int64_t column)>& count) {
  std::vector<float> means;
  for (std::int64_t i = 0; i < std::ssize(sums); ++i) {
    const std::int64_t queries = count(static_cast<int>(i / columns % results.groups), i % columns);
    const double sum = sums[static_cast<std::size_t>(i)];
    means.push_back(queries > 0 ? static_cast<float>(sum / static_cast<double>(queries)) : std::nanf(""));
  }
  return means;
}

}  // namespace

std::vector<Quantity> quantities() {
  std::vector<Quantity> all;
  for (int i = 0; i < kQuantityCount; ++i) all.push_back(static_cast<Quantity>(i));
  return all;
}

double median_of(const Distribution& cell) {
  return cell.quantile(0.5);
}
double mean_of(const Distribution& cell) {
  return cell.mean();
}
double variance_of(const Distribution& cell) {
  return cell.variance();
}

double maximum_of(const Distribution& cell) {
  return cell.largest();
}

double over_heads(const OperatorResults& results, Quantity quantity, std::int64_t layer,
                  double (*of)(const Distribution& cell)) {
  double sum = 0;
  for (std::int64_t head = 0; head < results.heads; ++head) sum += of(results.cell(quantity, layer, head));
  return sum / static_cast<double>(results.heads);
}

std::vector<float> label_means(const OperatorResults& results, std::size_t t) {
  return means_of(results.label_mass[t], results.labels, results,
                  [&](int group, std::int64_t) { return results.group_queries[static_cast<std::size_t>(group)]; });
}

std::vector<float> distance_means(const OperatorResults& results) {
  const std::int64_t columns = 2 * results.reach + 1;
  return means_of(results.distance_mass, columns, results, [&](int group, std::int64_t column) {
    return results.distance_queries[static_cast<std::size_t>(group * columns + column)];
  });
}

}  // namespace etc::analyze
