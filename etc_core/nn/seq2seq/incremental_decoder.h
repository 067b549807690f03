// A decoder token by token, for searches: each step computes one row of every hypothesis and remembers its keys and
// values (translation 2 and 8).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "etc_core/base/not_copied.h"
#include "etc_core/nn/seq2seq/encoder_decoder.h"
#include "etc_core/nn/seq2seq/hypothesis_rows.h"

namespace etc {

// What a decoder has read of each hypothesis: keys and values of its own tokens, which stay where they are while it goes on
// (hypothesis_rows.h), and those of the sources, which all hypotheses of a sentence share. Running scores are not kept:
// those of a row pass through the layers within its step, and no later row sees them.
class IncrementalDecoder : NotCopied {
 public:
  // encoder_states [S, H] of the sentences source_offsets [B+1]; the decoder must outlive this. Computes every layer's
  // keys and values of the sources.
  IncrementalDecoder(Seq2SeqDecoder& decoder, const Tensor& encoder_states, std::vector<std::int64_t> source_offsets);

  // The decoder's states [hypotheses, H] after one more token of each, in order; hypotheses of a sentence are neighbours,
  // sentences ascend. A hypothesis may go on as several, or as none. On the CPU the same bits as rows of
  // Seq2SeqDecoder::forward over all its tokens. Throws Error on a sentence or parent that is none, a parent of
  // another sentence, or sentences out of order; after any other Error no further step may follow.
  // Cost: one row of the decoder for each, and a copy of what was read for each that is not its parent's first.
  Tensor step(std::span<const HypothesisStep> hypotheses);

  std::int64_t bytes() const;  // of keys and values

 private:
  // Of one layer.
  struct Cached {
    Tensor keys, values;  // [rows of the placement, A]
    KeyColumns source;
  };

  void check(std::span<const HypothesisStep> hypotheses) const;
  std::vector<OperatorBatch> tiles(std::span<const HypothesisStep> hypotheses, const RowPlacement& placement) const;
  void put(const RowPlacement& placement, const Columns& fresh, Tensor& cache) const;

  Seq2SeqDecoder& decoder_;
  const std::vector<std::int64_t> source_offsets_;
  std::vector<Cached> layers_;
  HypothesisRows rows_;
};

}  // namespace etc
