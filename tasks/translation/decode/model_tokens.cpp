#include "tasks/translation/decode/model_tokens.h"

#include <algorithm>
#include <cmath>

#include "etc_core/base/counting.h"
#include "etc_core/base/error.h"
#include "etc_core/base/parallel.h"
#include "etc_core/ops/vocabulary_softmax.h"

namespace etc::translation {

namespace {

constexpr const char* kWhere = "translation";

ScoredRows scored(const Tensor& states, const VocabularyLayer& output, std::int64_t ranked) {
  const Tensor logits = vocabulary_logits(states, output);
  const std::int64_t rows = logits.rows(), vocabulary = logits.cols();
  ScoredRows result{Tensor(), std::vector<double>(static_cast<std::size_t>(rows)), {}, std::min(ranked, vocabulary)};
  const std::vector<std::int32_t> first(result.log_sums.size(), 0);  // any label gives the log-sum-exp
  ops::vocabulary_softmax(logits.device(), {.rows = rows,
                                            .vocabulary = vocabulary,
                                            .z = logits.data(),
                                            .labels = first.data(),
                                            .losses = result.log_sums.data()});
  if (result.ranked > 0) {
    std::vector<std::int64_t> offsets;  // each row of logits is treated as a segment of one column
    for (std::int64_t i = 0; i <= rows; ++i) offsets.push_back(i * vocabulary);
    result.top.resize(static_cast<std::size_t>(rows * result.ranked));
    ops::top_k(logits.device(), {.segments = rows,
                                 .cols = 1,
                                 .k = result.ranked,
                                 .offsets = offsets.data(),
                                 .z = logits.data(),
                                 .top = result.top.data()});
  }
  result.logits = logits.to(Device::cpu);
  for (std::int64_t i = 0; i < rows; ++i) {
    result.log_sums[static_cast<std::size_t>(i)] += static_cast<double>(result.logits.data()[i * vocabulary]);
  }
  return result;
}

// log p of one token of a row.
double log_p_of(const ScoredRows& rows, std::int64_t row, std::int32_t token) {
  return static_cast<double>(rows.logits.data()[row * rows.logits.cols() + token]) -
         rows.log_sums[static_cast<std::size_t>(row)];
}

// While counting memory: the probability rises with the token's id, so the last tokens are the best.
double counted_log_p(std::int32_t token, std::int64_t vocabulary) {
  return static_cast<double>(token - vocabulary);
}

// Writes the logarithm of the mean probability of `models` rows [V] to the first row.
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

ModelTokens::ModelTokens(const std::vector<EncodedSources>& models, std::int64_t ranked)
    : ranked_(ranked), counting_(counting()) {
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

void ModelTokens::step(std::span<const LiveHypothesis> hypotheses) {
  std::vector<HypothesisStep> rows;
  for (const auto& [sentence, parent, token] : hypotheses) rows.push_back({sentence, parent, token});
  const std::int64_t count = std::ssize(models_);
  std::vector<ScoredRows> all;  // for each model
  one_ = {};                    // frees its memory for the next one
  for (const Model& model : models_) {
    all.push_back(scored(model.incremental->step(rows), model.decoder->packed_output(), count == 1 ? ranked_ : 0));
  }
  if (count == 1) {
    one_ = std::move(all.front());
    return;
  }
  const std::int64_t numbers = std::ssize(hypotheses) * vocabulary_;
  if (mixed_.size() < numbers) {
    mixed_ = {};  // free the old memory before allocating
    mixed_ = Buffer<double>(numbers, Purpose::activations);
  }
  if (counting_) return;
  parallel_for(std::ssize(hypotheses), [&](std::int64_t row) {
    std::vector<double> of_models(static_cast<std::size_t>(count * vocabulary_));
    double* next = of_models.data();
    for (const ScoredRows& own : all) {
      for (std::int32_t v = 0; v < vocabulary_; ++v) *next++ = log_p_of(own, row, v);
    }
    mean_of_probabilities(of_models.data(), count, vocabulary_);
    std::copy_n(of_models.data(), vocabulary_, mixed_.data() + row * vocabulary_);
  });
}

double ModelTokens::log_p(std::int64_t hypothesis, std::int32_t token) const {
  if (counting_) return counted_log_p(token, vocabulary_);
  return models_.size() == 1 ? log_p_of(one_, hypothesis, token) : mixed_[hypothesis * vocabulary_ + token];
}

std::vector<NextToken> ModelTokens::best(std::int64_t hypothesis, std::int64_t k) const {
  if (counting_) {
    std::vector<NextToken> last;
    for (std::int64_t i = 1; i <= k; ++i) {
      const auto token = static_cast<std::int32_t>(vocabulary_ - i);
      last.push_back({token, counted_log_p(token, vocabulary_)});
    }
    return last;
  }
  if (models_.size() > 1) {
    return best_of({mixed_.data() + hypothesis * vocabulary_, static_cast<std::size_t>(vocabulary_)}, k);
  }
  const ops::Ranked* const top = one_.top.data() + hypothesis * one_.ranked;  // [ranked]
  // Non-finite logits are ranked first; among log-probabilities only nan is.
  if (k > one_.ranked || (k > 0 && !std::isfinite(top[0].value))) {
    std::vector<double> row;
    for (std::int32_t v = 0; v < vocabulary_; ++v) row.push_back(log_p_of(one_, hypothesis, v));
    return best_of(row, k);
  }
  std::vector<NextToken> best;
  for (std::int64_t j = 0; j < k; ++j) best.push_back({top[j].row, log_p_of(one_, hypothesis, top[j].row)});
  return best;
}

}  // namespace etc::translation
