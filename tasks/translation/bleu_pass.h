// BLEU of a model on prepared pairs: its own translations of the sources against the raw target lines (translation 8, 10).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "data/text/tokenizer.h"
#include "tasks/task.h"
#include "tasks/translation/decode/beam_search.h"
#include "tasks/translation/decode/model_tokens.h"
#include "tasks/translation/score.h"

namespace etc::translation {

// The translations of encoded sources, as `etc translate` makes them with the same options. Consecutive sentences are
// searched together while their sources and longest translations have at most kEvaluationTokens (tasks/train/evaluate.h)
// tokens; results do not depend on that. Within count_memory() only those sentences are searched that take the most.
std::vector<std::vector<Hypothesis>> searched_translations(const EncodedSources& sources,
                                                           std::span<const SearchSentence> sentences,
                                                           const SearchOptions& search);

class BleuPass {
 public:
  // keys: bleu_beam and the options of BLEU. Throws Error if the vocabulary lacks special pieces.
  BleuPass(Seq2SeqDecoder& decoder, std::shared_ptr<const data::Tokenizer> tokenizer, const TaskKeys& keys);

  // encoder_states [S, H] of the examples' sources, on the host. Throws Error on an example whose target has words but no raw
  // line, and those of beam_search() naming the example.
  void add(Examples examples, const std::vector<std::int64_t>& source_offsets, const Tensor& encoder_states);

  // {"bleu": percent}; empty without an example.
  Metrics metrics() const;

 private:
  Seq2SeqDecoder& decoder_;
  std::shared_ptr<const data::Tokenizer> tokenizer_;
  const SearchOptions search_;
  const BleuOptions options_;
  std::vector<BleuCounts> segments_;
};

}  // namespace etc::translation
