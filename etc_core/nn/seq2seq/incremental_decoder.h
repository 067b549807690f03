// Token-by-token decoding for beam search: each step computes one row of every hypothesis and caches its keys and
// values (translation 2 and 8).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "etc_core/base/not_copied.h"
#include "etc_core/nn/seq2seq/encoder_decoder.h"
#include "etc_core/nn/seq2seq/hypothesis_rows.h"

namespace etc {

// The cache of a decoder: keys and values of each hypothesis's own tokens, which stay in place while it is extended
// (hypothesis_rows.h), and keys and values of the sources, which all hypotheses of a sentence share. Running scores are
// not cached: the scores of a row pass through the layers within its step, and no later row needs them.
class IncrementalDecoder : NotCopied {
 public:
  // encoder_states [S, H] of the sentences source_offsets [B+1]; the decoder must outlive this. Computes every layer's
  // keys and values of the sources.
  IncrementalDecoder(Seq2SeqDecoder& decoder, const Tensor& encoder_states, std::vector<std::int64_t> source_offsets);

  // Returns the decoder's states [hypotheses, H] after one more token of each, in order. Hypotheses of a sentence must
  // be adjacent and sentences in ascending order. A hypothesis may be continued by several, or by none. On the CPU the
  // bits equal those of the rows of Seq2SeqDecoder::forward over all its tokens. Throws Error on a sentence or parent
  // that does not exist, a parent of another sentence, or sentences out of order; after any other Error no further step
  // may follow.
  // Cost: one row of the decoder per hypothesis, and a copy of the parent's rows for each hypothesis that is not the
  // first of its parent.
  Tensor step(std::span<const HypothesisStep> hypotheses);

  std::int64_t bytes() const;  // size of the cached keys and values

 private:
  // The cache of one layer.
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
