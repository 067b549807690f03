#include "tasks/translation/bleu_pass.h"

#include <utility>

#include "etc_core/base/error.h"
#include "tasks/feed/features.h"
#include "tasks/translation/decode/model_tokens.h"
#include "tasks/translation/vocabulary.h"

namespace etc::translation {

BleuPass::BleuPass(Seq2SeqDecoder& decoder, std::shared_ptr<const data::Tokenizer> tokenizer, const TaskKeys& keys)
    : decoder_(decoder), tokenizer_(std::move(tokenizer)), beam_(keys.bleu_beam), options_(keys.options()) {}

std::vector<std::vector<Hypothesis>> searched_translations(Seq2SeqDecoder& decoder,
                                                           const std::vector<std::int64_t>& source_offsets,
                                                           const Tensor& encoder_states, std::int64_t beam,
                                                           const SearchTokens& tokens) {
  SearchOptions search;
  search.beam = beam;
  search.max_len_a = 1.2;
  search.max_len_b = 10;
  search.tokens = tokens;
  std::vector<SearchSentence> sentences;
  for (std::size_t b = 0; b + 1 < source_offsets.size(); ++b)
    sentences.push_back({source_offsets[b + 1] - source_offsets[b], {}});
  const Tensor states = encoder_states.to(decoder.output().table->value.device());
  ModelTokens model({{decoder, states, source_offsets}}, tokens_asked(search));
  return beam_search(model, sentences, search);
}

void BleuPass::add(Examples examples, const std::vector<std::int64_t>& source_offsets, const Tensor& encoder_states) {
  const auto found =
      searched_translations(decoder_, source_offsets, encoder_states, beam_, search_tokens(*tokenizer_, "bleu_beam"));
  for (std::size_t b = 0; b < examples.size(); ++b) {
    const data::Example& example = examples[b].features;
    const std::string& reference = feed::text(example, "reference");
    if (reference.empty()) {
      fail("bleu_beam", "example {}: expected the line of its target, which data of split dev and test hold",
           feed::text(example, "id"));
    }
    const std::string best = found[b].empty() ? "" : sentence_of(*tokenizer_, found[b].front().tokens);
    const std::vector<std::string> references{bleu_words(reference, options_)};
    segments_.push_back(count_segment(bleu_words(best, options_), references, options_));
  }
}

Metrics BleuPass::metrics() const {
  if (segments_.empty()) return {};
  BleuCounts sums(options_.max_order);
  for (const BleuCounts& counts : segments_) sums.add(counts);
  return {{"bleu", bleu_of(sums, options_).score}};
}

}  // namespace etc::translation
