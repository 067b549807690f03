// The models that a search asks: encoder-decoders, one or several together (translation 8).
#pragma once

#include <memory>
#include <vector>

#include "etc_core/nn/seq2seq/incremental_decoder.h"
#include "tasks/translation/decode/beam_search.h"

namespace etc::translation {

// A model and the sources it has encoded.
struct EncodedSources {
  Seq2SeqDecoder& decoder;
  Tensor encoder_states;                     // [S, H]
  std::vector<std::int64_t> source_offsets;  // [B+1]
};

// log p of one model, or of several the logarithm of the mean of their probabilities; each remembers what it has read.
class ModelTokens final : public NextTokens {
 public:
  // Throws Error when there is none, or their vocabularies or sentences differ in number.
  explicit ModelTokens(const std::vector<EncodedSources>& models);

  std::int64_t vocabulary() const override { return vocabulary_; }
  void step(std::span<const LiveHypothesis> hypotheses, double* log_p) override;

 private:
  struct Model {
    Seq2SeqDecoder* decoder;
    std::unique_ptr<IncrementalDecoder> incremental;
  };
  std::vector<Model> models_;
  std::int64_t vocabulary_ = 0;
};

}  // namespace etc::translation
