#include "tasks/translation/decode/translate.h"

#include <algorithm>
#include <utility>

#include "etc_core/base/error.h"
#include "tasks/translation/decode/model_tokens.h"

namespace etc::translation {

namespace {

using Numbers = std::vector<std::size_t>;  // indices of sentences

EncoderInput input_of(std::span<const TranslationSource> sentences, const Numbers& numbers) {
  EncoderInput input;
  for (const std::size_t i : numbers) {
    const std::vector<std::int32_t>& ids = sentences[i].ids;
    input.token_ids.insert(input.token_ids.end(), ids.begin(), ids.end());
    input.long_offsets.push_back(std::ssize(input.token_ids));
    input.global_offsets.push_back(0);
  }
  return input;
}

}  // namespace

std::vector<Numbers> search_batches(std::span<const TranslationSource> sentences, const TranslateOptions& options) {
  Numbers order;
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    const std::int64_t tokens = std::ssize(sentences[i].ids);
    if (tokens > options.search.limit) {
      fail("translate", "{}: expected at most {} tokens, got {}", sentence_text(sentences[i].name, i),
           options.search.limit, tokens);
    }
    if (!is_empty_source(tokens)) order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return sentences[i].ids.size(); });
  std::vector<Numbers> all;
  std::int64_t filled = 0;
  for (const std::size_t i : order) {
    const std::int64_t tokens = std::ssize(sentences[i].ids);
    if (all.empty() || filled + tokens > options.batch_tokens) {
      all.emplace_back();
      filled = 0;
    }
    all.back().push_back(i);
    filled += tokens;
  }
  return all;
}

std::vector<std::vector<Hypothesis>> translate(const std::vector<TranslationModel>& models,
                                               std::span<const TranslationSource> sentences,
                                               const TranslateOptions& options) {
  std::vector<std::vector<Hypothesis>> results(sentences.size());
  for (const Numbers& numbers : search_batches(sentences, options)) {
    if (options.search.before_step) options.search.before_step();  // before they are encoded
    const EncoderInput input = input_of(sentences, numbers);
    Tape tape(Recording::off);
    std::vector<EncodedSources> encoded;
    for (const TranslationModel& model : models) {
      const Var states = model.encoder.forward(tape, input, {}).long_states;
      encoded.push_back({model.decoder, states.value(), input.long_offsets});
    }
    ModelTokens tokens(encoded, tokens_asked(options.search));
    std::vector<SearchSentence> searched;
    for (const std::size_t i : numbers) {
      const TranslationSource& source = sentences[i];
      searched.push_back({std::ssize(source.ids), source.prefix, sentence_text(source.name, i)});
    }
    auto found = beam_search(tokens, searched, options.search);
    for (std::size_t b = 0; b < numbers.size(); ++b) results[numbers[b]] = std::move(found[b]);
    if (options.searched) options.searched(std::ssize(input.token_ids));
  }
  return results;
}

}  // namespace etc::translation
