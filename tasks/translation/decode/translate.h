// Translates sentences of any length in batches (translation 8).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
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
  std::function<void(std::int64_t tokens)> searched = nullptr;  // called after each batch with its source tokens
};

// One sentence to translate.
struct TranslationSource {
  std::vector<std::int32_t> ids;     // with </s>; empty: an empty line, as if there were only </s>
  std::vector<std::int32_t> prefix;  // forced beginning of its translation
  std::string name = {};             // SearchSentence::name
};

// The batches that translate() searches together, as indices of sentences: all that are not empty, sorted by length, in
// batches of at most batch_tokens tokens or of one sentence. Throws Error like translate().
std::vector<std::vector<std::size_t>> search_batches(std::span<const TranslationSource> sentences,
                                                     const TranslateOptions& options);

// The hypotheses of each sentence, best first, in the order of the sentences. Sentences of similar length are searched
// together, so that they end together; a sentence's result does not depend on the others in its batch.
// Rules: errors are those of beam_search(), which names the sentences as they are named or numbered here, and the models; a
//   source longer than search.limit is an Error naming it. Within count_memory() every translation has its maximum length
//   (model_tokens.h).
std::vector<std::vector<Hypothesis>> translate(const std::vector<TranslationModel>& models,
                                               std::span<const TranslationSource> sentences,
                                               const TranslateOptions& options);

}  // namespace etc::translation
