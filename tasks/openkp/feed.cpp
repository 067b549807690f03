#include "tasks/openkp/feed.h"

#include "tasks/feed/batch.h"
#include "tasks/feed/features.h"
#include "tasks/openkp/visual.h"

namespace etc::openkp {

namespace {

using feed::Numbers;
using feed::numbers;

void check_elements(const feed::Examination& examination, const data::Example& example, std::int64_t elements) {
  if (feed::reals(example, kCoordinates[0]).empty()) return;  // fixed blocks have none
  for (const char* coordinate : kCoordinates) examination.finite(coordinate, elements);
  for (const char* feature : {"font_ids", "parent_font_ids", "indicators"}) examination.same_length(feature, elements);
  examination.in_range("font_ids", 0, kFontClasses);
  examination.in_range("parent_font_ids", 0, kFontClasses);
}

void check_labels(const feed::Examination& examination, const data::Example& example, std::int64_t words) {
  const Numbers& starts = numbers(example, "label_start_idx");
  examination.same_length("label_phrase_len", std::ssize(starts));
  const Numbers& lengths = numbers(example, "label_phrase_len");
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (starts[i] < 0 || lengths[i] < 1 || starts[i] > words - lengths[i]) {
      examination.reject("label_start_idx", "expected {} words from word {} to lie within the {} words of the page",
                         lengths[i], starts[i], words);
    }
  }
}

// Appends, for every owner 0 … count−1 of a page, the end of its token range; `base`: number of tokens before the page.
void append_run_ends(const Numbers& owners, std::int64_t count, std::int64_t base, Numbers& offsets) {
  std::size_t token = 0;
  for (std::int64_t owner = 0; owner < count; ++owner) {
    while (token < owners.size() && owners[token] == owner) ++token;
    offsets.push_back(base + static_cast<std::int64_t>(token));
  }
}

template <typename Count>
SegmentOffsets runs(Examples examples, const char* owners, Count count) {
  auto offsets = std::make_shared<Numbers>(1, 0);
  for (const data::LoadedExample& loaded : examples) {
    append_run_ends(numbers(loaded.features, owners), count(loaded.features), offsets->back(), *offsets);
  }
  return offsets;
}

}  // namespace

std::int64_t num_elements(const data::Example& example) {
  const std::int64_t elements = std::ssize(feed::reals(example, kCoordinates[0]));
  if (elements > 0) return elements;
  const Numbers& blocks = numbers(example, "long_vdom_idx");
  return blocks.empty() ? 0 : blocks.back() + 1;
}

std::int64_t num_words(const data::Example& example) {
  return feed::number(example, "num_words");
}

void check_example(const data::Example& example, const EncoderConfig& model, const std::string& where) {
  const feed::Examination examination(example, where);
  const std::int64_t length = examination.length("long_token_ids");
  const std::int64_t words = num_words(example), elements = num_elements(example);
  if (words < 1) examination.reject("num_words", "expected at least 1, got {}", words);
  for (const char* feature : {"long_word_idx", "long_vdom_idx"}) {
    examination.same_length(feature, length);
    examination.never_decreases(feature);
  }
  examination.token_ids("long_token_ids", model.vocab_size);
  examination.in_range("long_word_idx", 0, words);
  examination.in_range("long_vdom_idx", 0, elements);
  check_elements(examination, example, elements);
  check_labels(examination, example, words);
  if (model.vocab_size <= kElementTokenId) {
    examination.reject("long_vdom_idx", "global tokens have id {}, got vocab_size={}", kElementTokenId,
                       model.vocab_size);
  }
}

EncoderInput feed(Examples examples, const EncoderConfig& model, bool global_attention, const std::string& where) {
  return feed::batch_input(examples, model, global_attention, [&](EncoderInput& input, const data::Example& example) {
    check_example(example, model, where);
    const Numbers& ids = numbers(example, "long_token_ids");
    const auto elements = static_cast<std::size_t>(num_elements(example));
    feed::append(input.token_ids, ids);
    input.global_token_ids.resize(input.global_token_ids.size() + elements, kElementTokenId);
    return sparse::structure_from_example_ids(std::vector<std::int32_t>(ids.size(), 1),
                                              std::vector<std::int32_t>(elements, 1),
                                              feed::narrowed(numbers(example, "long_vdom_idx")));
  });
}

SegmentOffsets tokens_of_words(Examples examples) {
  return runs(examples, "long_word_idx", num_words);
}

SegmentOffsets tokens_of_elements(Examples examples) {
  return runs(examples, "long_vdom_idx", num_elements);
}

std::shared_ptr<const RaggedRows> words_of_pages(Examples examples) {
  auto rows = std::make_shared<RaggedRows>();
  rows->offsets.push_back(0);
  for (const data::LoadedExample& loaded : examples) {
    rows->offsets.push_back(rows->offsets.back() + num_words(loaded.features));
    rows->sample_ordinals.push_back(static_cast<std::uint64_t>(loaded.sample_ordinal));
  }
  return rows;
}

}  // namespace etc::openkp
