#include "tasks/text/top_scores.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "etc_core/base/error.h"
#include "etc_core/ops/top_k.h"

namespace etc::text {

std::vector<std::int64_t> largest(std::span<const float> values, std::int64_t count) {
  const std::array<std::int64_t, 2> offsets = {0, std::ssize(values)};
  std::vector<ops::Ranked> top(static_cast<std::size_t>(std::min(count, offsets[1])));
  if (top.empty()) return {};
  ops::top_k(Device::cpu, {1, 1, std::ssize(top), offsets.data(), values.data(), top.data()});
  std::vector<std::int64_t> positions;
  for (const ops::Ranked& ranked : top) positions.push_back(ranked.row);
  return positions;
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
    if (!std::isfinite(z)) fail("predict", "example {}: a logit is {} (the weights may be damaged)", example_id, z);
  }
}

}  // namespace etc::text
