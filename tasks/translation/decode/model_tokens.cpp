#include "tasks/translation/decode/model_tokens.h"

#include <algorithm>
#include <cmath>

#include "etc_core/base/error.h"
#include "etc_core/base/parallel.h"
#include "etc_core/ops/vocabulary_softmax.h"

namespace etc::translation {

namespace {

constexpr const char* kWhere = "translation";

// Logits of all rows, and of each row the logarithm of the sum of their exponentials.
struct Scored {
  Tensor logits;                 // [rows, V], on the host
  std::vector<double> log_sums;  // [rows]

  // log_p = logits − log_sums   [V]
  void log_p(std::int64_t row, double* out) const {
    const float* const z = logits.data() + row * logits.cols();
    const double log_sum = log_sums[static_cast<std::size_t>(row)];
    for (std::int64_t v = 0; v < logits.cols(); ++v) out[v] = static_cast<double>(z[v]) - log_sum;
  }
};

Scored scored(const Tensor& states, const VocabularyLayer& output) {
  const Tensor logits = vocabulary_logits(states, output);
  Scored result{Tensor(), std::vector<double>(static_cast<std::size_t>(logits.rows()))};
  const std::vector<std::int32_t> first(result.log_sums.size(), 0);  // the loss of any label has the sum
  ops::vocabulary_softmax(logits.device(), {.rows = logits.rows(),
                                            .vocabulary = logits.cols(),
                                            .z = logits.data(),
                                            .labels = first.data(),
                                            .losses = result.log_sums.data()});
  result.logits = logits.to(Device::cpu);
  for (std::int64_t i = 0; i < logits.rows(); ++i) {
    result.log_sums[static_cast<std::size_t>(i)] += static_cast<double>(result.logits.data()[i * logits.cols()]);
  }
  return result;
}

// The logarithm of the mean of the probabilities of `models` rows [V], into the first.
void mean_of_probabilities(double* rows, std::int64_t models, std::int64_t vocabulary) {
  for (std::int64_t v = 0; v < vocabulary; ++v) {
    double largest = rows[v];
    for (std::int64_t m = 1; m < models; ++m) largest = std::max(largest, rows[m * vocabulary + v]);
    double sum = 0;
    for (std::int64_t m = 0; m < models; ++m) sum += std::exp(rows[m * vocabulary + v] - largest);
    rows[v] = largest + std::log(sum / static_cast<double>(models));
  }
}

}  // namespace

ModelTokens::ModelTokens(const std::vector<EncodedSources>& models) {
  if (models.empty()) fail(kWhere, "expected at least one model");
  vocabulary_ = models.front().decoder.config().target_vocabulary();
  for (const EncodedSources& model : models) {
    const std::int64_t own = model.decoder.config().target_vocabulary();
    if (own != vocabulary_) fail(kWhere, "models of one ensemble: expected {} target tokens, got {}", vocabulary_, own);
    if (model.source_offsets.size() != models.front().source_offsets.size()) {
      fail(kWhere, "models of one ensemble: expected {} sentences, got {}", models.front().source_offsets.size() - 1,
           model.source_offsets.size() - 1);
    }
    models_.push_back({&model.decoder, std::make_unique<IncrementalDecoder>(model.decoder, model.encoder_states,
                                                                            model.source_offsets)});
  }
}

void ModelTokens::step(std::span<const LiveHypothesis> hypotheses, double* log_p) {
  std::vector<HypothesisStep> rows;
  for (const auto& [sentence, parent, token] : hypotheses) rows.push_back({sentence, parent, token});
  std::vector<Scored> all;  // of each model
  for (const Model& model : models_) all.push_back(scored(model.incremental->step(rows), model.decoder->output()));
  const std::int64_t count = std::ssize(all);
  parallel_for(std::ssize(hypotheses), [&](std::int64_t row) {
    double* const out = log_p + row * vocabulary_;
    if (count == 1) return all.front().log_p(row, out);
    std::vector<double> of_models(static_cast<std::size_t>(count * vocabulary_));
    for (std::int64_t m = 0; m < count; ++m) {
      all[static_cast<std::size_t>(m)].log_p(row, of_models.data() + m * vocabulary_);
    }
    mean_of_probabilities(of_models.data(), count, vocabulary_);
    std::copy_n(of_models.data(), vocabulary_, out);
  });
}

}  // namespace etc::translation
