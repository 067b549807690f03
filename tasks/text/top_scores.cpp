#include "tasks/text/top_scores.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "etc_core/base/error.h"

namespace etc::text {

std::vector<std::int64_t> largest(std::span<const float> values, std::int64_t count) {
  std::vector<std::int64_t> order(values.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const auto before = [&](std::int64_t a, std::int64_t b) {
    const float x = values[static_cast<std::size_t>(a)], y = values[static_cast<std::size_t>(b)];
    return x > y || (x == y && a < b);
  };
  const auto kept = order.begin() + std::min(count, std::ssize(order));
  std::partial_sort(order.begin(), kept, order.end(), before);
  order.erase(kept, order.end());
  return order;
}

std::int64_t first_largest(std::span<const float> values) {
  return std::max_element(values.begin(), values.end()) - values.begin();
}

std::vector<float> softmax(std::span<const float> logits) {
  const double largest_logit = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float z : logits) sum += std::exp(z - largest_logit);
  std::vector<float> probabilities;
  probabilities.reserve(logits.size());
  for (const float z : logits) probabilities.push_back(static_cast<float>(std::exp(z - largest_logit) / sum));
  return probabilities;
}

void require_finite(std::span<const float> logits, const std::string& example_id) {
  for (const float z : logits) {
    if (!std::isfinite(z)) fail("predict", "example {}: a logit is {} (are the weights sound?)", example_id, z);
  }
}

}  // namespace etc::text
