// The models that a search asks: encoder-decoders, one or several together (translation 8).
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

// Logits of rows [rows, V], on the host, and what makes them log-probabilities.
struct ScoredRows {
  Tensor logits;
  std::vector<double> log_sums;  // [rows] of the exponentials: log p = logit − log_sum
  std::vector<ops::Ranked> top;  // [rows, ranked] of the logits
  std::int64_t ranked = 0;
};

// log p of one model, or of several the logarithm of the mean of their probabilities; each remembers what it has read.
// Made while the thread counts (counting.h), it says that the vocabulary's last tokens are the most probable ones always, so
// that no translation ends before it must: a search then takes the most memory it can.
class ModelTokens final : public NextTokens {
 public:
  // ranked: how many of the best tokens of a hypothesis will be asked for, which one model finds at once; more take longer.
  // Throws Error when there is no model, or their vocabularies or sentences differ in number.
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
  ScoredRows one_;        // of a single model
  Buffer<double> mixed_;  // [hypotheses, V] of several
};

}  // namespace etc::translation
