// Translates sentences of any length in batches (translation 8).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "etc_core/nn/seq2seq/encoder_decoder.h"
#include "tasks/translation/decode/beam_search.h"

namespace etc::translation {

// A model, or a member of an ensemble.
struct TranslationModel {
  Seq2SeqEncoder& encoder;
  Seq2SeqDecoder& decoder;
};

struct TranslateOptions {
  SearchOptions search;
  std::int64_t batch_tokens = 4096;  // source tokens searched together; a longer sentence is a batch of its own
};

// One sentence to translate.
struct TranslationSource {
  std::vector<std::int32_t> ids;     // with </s>; empty: an empty line, which has no hypothesis
  std::vector<std::int32_t> prefix;  // forced beginning of its translation
};

// The batches that translate() searches together, as indices of sentences: all sentences with tokens, sorted by length, in
// batches of at most batch_tokens tokens or of one sentence. Throws Error like translate().
std::vector<std::vector<std::size_t>> search_batches(std::span<const TranslationSource> sentences,
                                                     const TranslateOptions& options);

// The hypotheses of each sentence, best first, in the order of the sentences. Sentences of similar length are searched
// together, so that they end together; a sentence's result does not depend on the others in its batch.
// Rules: errors are those of beam_search() and the models, which number the sentences within a batch; a source longer than
//   search.limit is an Error naming it. Within count_memory() every translation has its maximum length (model_tokens.h).
std::vector<std::vector<Hypothesis>> translate(const std::vector<TranslationModel>& models,
                                               std::span<const TranslationSource> sentences,
                                               const TranslateOptions& options);

}  // namespace etc::translation
