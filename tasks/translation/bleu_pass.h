// BLEU of a model on prepared pairs: its own translations of the sources against the raw target lines (translation 8, 10).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/text/tokenizer.h"
#include "etc_core/nn/seq2seq/encoder_decoder.h"
#include "tasks/task.h"
#include "tasks/translation/decode/beam_search.h"
#include "tasks/translation/score.h"

namespace etc::translation {

// Translations of encoded sources [S, H] by beam search with `beam` hypotheses. They have at most 1.2·S + 10 pieces, which
// bounds the translations of a model that has not learned to predict </s>.
std::vector<std::vector<Hypothesis>> searched_translations(Seq2SeqDecoder& decoder,
                                                           const std::vector<std::int64_t>& source_offsets,
                                                           const Tensor& encoder_states, std::int64_t beam,
                                                           const SearchTokens& tokens);

class BleuPass {
 public:
  // keys: bleu_beam and the options of BLEU. Throws Error if the vocabulary lacks special pieces.
  BleuPass(Seq2SeqDecoder& decoder, std::shared_ptr<const data::Tokenizer> tokenizer, const TaskKeys& keys);

  // encoder_states [S, H] of the examples' sources, on the host. Throws Error on an example without its raw target line.
  void add(Examples examples, const std::vector<std::int64_t>& source_offsets, const Tensor& encoder_states);

  // {"bleu": percent}; empty without an example.
  Metrics metrics() const;

 private:
  Seq2SeqDecoder& decoder_;
  std::shared_ptr<const data::Tokenizer> tokenizer_;
  const std::int64_t beam_;
  const BleuOptions options_;
  std::vector<BleuCounts> segments_;
};

}  // namespace etc::translation
