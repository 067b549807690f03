// A decoder token by token, for searches: each step computes one row of every hypothesis and remembers its keys and
// values (translation 2 and 8).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "etc_core/base/not_copied.h"
#include "etc_core/nn/seq2seq/encoder_decoder.h"

namespace etc {

// A hypothesis of a search, and what it reads next.
struct HypothesisStep {
  std::int64_t sentence = 0;  // whose source it sees
  std::int64_t parent =
      -1;                  // the hypothesis it goes on from, by its place in the step before; -1: none, the first step
  std::int32_t token = 0;  // </s> first, then what was chosen last
};

// What a decoder has read of each hypothesis: keys and values of its own tokens, which are moved with it from step to
// step, and those of the sources, which all hypotheses of a sentence share and nothing moves. Running scores are not
// kept: those of a row pass through the layers within its step, and no later row sees them.
class IncrementalDecoder : NotCopied {
 public:
  // encoder_states [S, H] of the sentences source_offsets [B+1]; the decoder must outlive this. Computes every layer's
  // keys and values of the sources.
  IncrementalDecoder(Seq2SeqDecoder& decoder, const Tensor& encoder_states, std::vector<std::int64_t> source_offsets);

  // The decoder's states [hypotheses, H] after one more token of each, in order; hypotheses of a sentence are neighbours,
  // sentences ascend. A hypothesis may go on as several, or as none. On the CPU the same bits as rows of
  // Seq2SeqDecoder::forward over all its tokens. Throws Error on a sentence or parent that is none, a parent of
  // another sentence, or sentences out of order.
  // Cost: one row of the decoder for each, and a copy of what it has read.
  Tensor step(std::span<const HypothesisStep> hypotheses);

  std::int64_t bytes() const;  // of keys and values

 private:
  // Of one layer.
  struct Cached {
    Tensor keys, values;  // [read tokens of all hypotheses, A]
    KeyColumns source;
  };

  void check(std::span<const HypothesisStep> hypotheses) const;
  std::vector<OperatorBatch> tiles(std::span<const HypothesisStep> hypotheses) const;
  Tensor moved(std::span<const HypothesisStep> hypotheses, const Tensor& read, const Columns& fresh) const;

  Seq2SeqDecoder& decoder_;
  const std::vector<std::int64_t> source_offsets_;
  std::vector<Cached> layers_;
  std::vector<std::int64_t> read_{0};     // [hypotheses+1] offsets of what was read
  std::vector<std::int64_t> reading_{0};  // the same with this step's tokens
  std::vector<std::int64_t> sentences_;   // of the hypotheses
};

}  // namespace etc
