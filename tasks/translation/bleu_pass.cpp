#include "tasks/translation/bleu_pass.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "etc_core/autograd/functions.h"
#include "etc_core/base/counting.h"
#include "etc_core/base/error.h"
#include "tasks/feed/features.h"
#include "tasks/train/evaluate.h"
#include "tasks/translation/vocabulary.h"

namespace etc::translation {

namespace {

// Consecutive sentences [first, end), and the tokens of their sources and longest translations.
struct Group {
  std::size_t first = 0, end = 0;
  std::int64_t tokens = 0;
};

std::vector<Group> groups_of(std::span<const SearchSentence> sentences, const SearchOptions& search) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    const std::int64_t source = sentences[i].source_tokens, tokens = source + longest_translation(search, source);
    if (groups.empty() || groups.back().tokens + tokens > kEvaluationTokens) groups.push_back({i, i, 0});
    groups.back().end = i + 1;
    groups.back().tokens += tokens;
  }
  return groups;
}

// The sources of a group, on the decoder's device.
EncodedSources sources_of(const EncodedSources& all, const Group& group) {
  std::vector<std::int64_t> offsets;
  const std::int64_t first = all.source_offsets[group.first];
  for (std::size_t i = group.first; i <= group.end; ++i) offsets.push_back(all.source_offsets[i] - first);
  std::vector<std::int64_t> rows(static_cast<std::size_t>(offsets.back()));
  std::iota(rows.begin(), rows.end(), first);
  Tape tape(Recording::off);
  const Tensor own = gather_rows(tape, Var(all.encoder_states), std::move(rows)).value();
  return {all.decoder, own.to(all.decoder.output().table->value.device()), std::move(offsets)};
}

SearchOptions search_of(const data::Tokenizer& tokenizer, const TaskKeys& keys) {
  SearchOptions search;
  search.beam = keys.bleu_beam;
  search.tokens = search_tokens(tokenizer);
  return search;
}

}  // namespace

std::vector<std::vector<Hypothesis>> searched_translations(const EncodedSources& sources,
                                                           std::span<const SearchSentence> sentences,
                                                           const SearchOptions& search) {
  std::vector<Group> groups = groups_of(sentences, search);
  if (counting() && !groups.empty()) groups = {*std::ranges::max_element(groups, {}, &Group::tokens)};
  std::vector<std::vector<Hypothesis>> all;
  for (const Group& group : groups) {
    ModelTokens model({sources_of(sources, group)}, tokens_asked(search));
    auto found = beam_search(model, sentences.subspan(group.first, group.end - group.first), search);
    std::ranges::move(found, std::back_inserter(all));
  }
  return all;
}

BleuPass::BleuPass(Seq2SeqDecoder& decoder, std::shared_ptr<const data::Tokenizer> tokenizer, const TaskKeys& keys)
    : decoder_(decoder),
      tokenizer_(std::move(tokenizer)),
      search_(search_of(*tokenizer_, keys)),
      options_(keys.options()) {}

void BleuPass::add(Examples examples, const std::vector<std::int64_t>& source_offsets, const Tensor& encoder_states) {
  std::vector<SearchSentence> sentences;
  for (std::size_t b = 0; b < examples.size(); ++b) {
    sentences.push_back(
        {source_offsets[b + 1] - source_offsets[b], {}, "example " + feed::text(examples[b].features, "id")});
  }
  const auto found = searched_translations({decoder_, encoder_states, source_offsets}, sentences, search_);
  for (std::size_t b = 0; b < examples.size(); ++b) {
    const data::Example& example = examples[b].features;
    const std::string& reference = feed::text(example, "reference");
    const bool empty_target = feed::numbers(example, "target_ids").size() <= 1;  // only </s>
    if (reference.empty() && !empty_target) {
      fail("bleu_beam", "{}: expected the line of its target, which data of split dev and test hold",
           sentences[b].name);
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
