// Token probabilities of one encoder-decoder or an ensemble (translation 8).
#pragma once

#include <memory>
#include <vector>

#include "etc_core/base/buffer.h"
#include "etc_core/nn/seq2seq/incremental_decoder.h"
#include "etc_core/ops/top_k.h"
#include "tasks/translation/decode/beam_search.h"

namespace etc::translation {

// A model and the sources it has encoded.
struct EncodedSources {
  Seq2SeqDecoder& decoder;
  Tensor encoder_states;                     // [S, H]
  std::vector<std::int64_t> source_offsets;  // [B+1]
};

// Logits of rows [rows, V], on the host, and the values that convert them to log-probabilities.
struct ScoredRows {
  Tensor logits;
  std::vector<double> log_sums;  // [rows] of the exponentials: log p = logit − log_sum
  std::vector<ops::Ranked> top;  // [rows, ranked] of the logits
  std::int64_t ranked = 0;
};

// log p of one model, or the logarithm of the mean of several models' probabilities; each model keeps its decoder state. If
// constructed while the thread counts memory (counting.h), the vocabulary's last tokens are always the most probable ones, so
// no translation ends before its maximum length and the search takes the most memory possible.
class ModelTokens final : public NextTokens {
 public:
  // ranked: number of best tokens of a hypothesis that will be requested; a single model ranks them in advance, further ones
  // take longer. Throws Error when there is no model, or if the models' vocabularies or sentences differ in number.
  explicit ModelTokens(const std::vector<EncodedSources>& models, std::int64_t ranked = 16);

  std::int64_t vocabulary() const override { return vocabulary_; }
  void step(std::span<const LiveHypothesis> hypotheses) override;
  std::vector<NextToken> best(std::int64_t hypothesis, std::int64_t k) const override;
  double log_p(std::int64_t hypothesis, std::int32_t token) const override;

 private:
  struct Model {
    Seq2SeqDecoder* decoder;
    std::unique_ptr<IncrementalDecoder> incremental;
  };
  std::vector<Model> models_;
  std::int64_t vocabulary_ = 0, ranked_ = 0;
  const bool counting_;
  ScoredRows one_;        // for a single model
  Buffer<double> mixed_;  // [hypotheses, V] for several models
};

}  // namespace etc::translation
