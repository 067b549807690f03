#include "tasks/span/pieces.h"

#include <cmath>
#include <numbers>
#include <numeric>

namespace etc::span {

VocabularyResult piece_result(const Var& states, const VocabularyLayer& layer, std::span<const std::int32_t> labels) {
  return vocabulary_loss(states.value().to(layer.table->value.device()), layer, labels);
}

double piece_loss(Tape& tape, const Var& states, const VocabularyLayer& layer, std::span<const std::int32_t> labels,
                  double scale, double smoothing) {
  const Tensor rows = states.value().to(layer.table->value.device());
  const VocabularyResult result = tape.recording()
                                      ? vocabulary_loss_with_gradients(rows, layer, labels, scale, smoothing)
                                      : vocabulary_loss(rows, layer, labels, smoothing);
  if (tape.recording() && !labels.empty()) states.gradient()->add(result.dx.to(states.value().device()));
  const std::vector<double>& losses = smoothing > 0 ? result.smoothed : result.losses;
  return scale * std::accumulate(losses.begin(), losses.end(), 0.0);
}

void Perplexity::add(const VocabularyResult& result, std::span<const std::int32_t> labels) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    nats_ += result.losses[i];
    best_ += result.best[i] == labels[i] ? 1 : 0;
  }
  pieces_ += std::ssize(labels);
}

double Perplexity::bits() const {
  return nats_ / std::numbers::ln2;
}

Metrics Perplexity::metrics() const {
  if (pieces_ == 0) return {};
  const auto pieces = static_cast<double>(pieces_);
  const double bits_per_piece = nats_ / pieces / std::numbers::ln2;
  return {{"log2_likelihood", -bits_per_piece},
          {"perplexity", std::exp2(bits_per_piece)},
          {"token_accuracy", static_cast<double>(best_) / pieces}};
}

}  // namespace etc::span
