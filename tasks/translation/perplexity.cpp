#include "tasks/translation/perplexity.h"

#include <cmath>
#include <numbers>

namespace etc::translation {

void Perplexity::add(const VocabularyResult& result, std::span<const std::int32_t> labels) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    nats_ += result.losses[i];
    best_ += result.best[i] == labels[i] ? 1 : 0;
  }
  pieces_ += std::ssize(labels);
}

Metrics Perplexity::metrics() const {
  if (pieces_ == 0) return {};
  const auto pieces = static_cast<double>(pieces_);
  const double bits = nats_ / pieces / std::numbers::ln2;
  return {{"log2_likelihood", -bits},
          {"perplexity", std::exp2(bits)},
          {"token_accuracy", static_cast<double>(best_) / pieces}};
}

}  // namespace etc::translation
