// Sentences of any lengths translated in batches (translation 8).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "etc_core/nn/seq2seq/encoder_decoder.h"
#include "tasks/translation/decode/beam_search.h"

namespace etc::translation {

// A model, or one of an ensemble.
struct TranslationModel {
  Seq2SeqEncoder& encoder;
  Seq2SeqDecoder& decoder;
};

struct TranslateOptions {
  SearchOptions search;
  std::int64_t batch_tokens = 4096;  // source tokens searched together; a longer sentence is alone
};

// One sentence to translate.
struct TranslationSource {
  std::vector<std::int32_t> ids;     // with </s>; empty: an empty line, which has no hypothesis
  std::vector<std::int32_t> prefix;  // of its translation
};

// Numbers of those sentences that have tokens, from the shortest to the longest, in batches of at most batch_tokens tokens
// or of one sentence: what translate() searches together. Throws Error as it does.
std::vector<std::vector<std::size_t>> search_batches(std::span<const TranslationSource> sentences,
                                                     const TranslateOptions& options);

// The hypotheses of each sentence, best first, in the order of the sentences. Sentences are searched together in order
// of their lengths, so that they end together; a sentence's result does not depend on which those are.
// Rules: errors are those of beam_search() and the models, which number the sentences of a batch; a source longer than
//   search.limit is an Error naming it. Within count_memory() every translation is as long as it may be (model_tokens.h).
std::vector<std::vector<Hypothesis>> translate(const std::vector<TranslationModel>& models,
                                               std::span<const TranslationSource> sentences,
                                               const TranslateOptions& options);

}  // namespace etc::translation
