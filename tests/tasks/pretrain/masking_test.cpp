// Groups, counts and replacements of masked pieces with the program's own draws; the golden ones are in
// instances_golden_test.cpp.
#include "tasks/pretrain/masking.h"

#include <algorithm>
#include <set>

#include "tasks/pretrain/schema.h"
#include "tests/support/catch.h"

namespace etc::pretrain {
namespace {

using Numbers = std::vector<std::int64_t>;

// `[CLS] words [SEP]` of 3 pieces each.
struct Text {
  explicit Text(std::int64_t words) {
    ids.push_back(2);
    kinds.push_back(kSpecial);
    for (std::int64_t piece = 0; piece < 3 * words; ++piece) {
      ids.push_back(100 + piece);
      kinds.push_back(piece % 3 == 0 ? kBegins : kContinues);
    }
    ids.push_back(3);
    kinds.push_back(kSpecial);
  }
  Numbers ids, kinds, sentences;
};

MaskRules rules_of(bool whole_words) {
  MaskRules rules;
  rules.whole_words = whole_words;
  rules.max_predictions = 1000;
  rules.mask_id = 4;
  rules.vocab_size = 50'000;
  return rules;
}

Masks masks_of(const Text& text, const MaskRules& rules, std::uint64_t key) {
  CounterDraws draws(key);
  return draw_masks({text.ids, text.kinds, text.sentences}, rules, draws);
}

// A text of sentences of 4 … 9 pieces for contrastive coding: [CLS] and no [SEP].
Text sentences_text(std::int64_t sentences) {
  Text text(0);
  text.ids.pop_back();
  text.kinds.pop_back();
  for (std::int64_t s = 0; s < sentences; ++s) {
    text.sentences.push_back(4 + s % 6);
    for (std::int64_t piece = 0; piece < text.sentences.back(); ++piece) {
      text.ids.push_back(1000 * (s + 1) + piece);
      text.kinds.push_back(piece % 2 == 0 ? kBegins : kContinues);
    }
  }
  return text;
}

}  // namespace

TEST_CASE("counts of masked pieces are rounded to the nearest even number and bounded", "[pretrain]") {
  const std::pair<std::int64_t, std::int64_t> expected[] = {{3, 1},   {10, 2},   {30, 4},   {50, 8},
                                                            {70, 10}, {110, 16}, {128, 19}, {512, 77}};
  for (const auto& [length, count] : expected) CHECK(number_to_mask(length, 0.15, 80) == count);
  CHECK(number_to_mask(512, 0.15, 20) == 20);
  CHECK(number_to_mask(0, 0.15, 20) == 1);
}

TEST_CASE("every mask is of a piece, in order, as many as are wanted, and the rest stays", "[pretrain]") {
  const Text text(40);
  for (const bool whole_words : {false, true}) {
    for (std::uint64_t key = 0; key < 50; ++key) {
      CAPTURE(whole_words, key);
      const Masks masks = masks_of(text, rules_of(whole_words), key);
      CHECK(std::ssize(masks.positions) == 18);  // round(122 · 0.15)
      CHECK(masks.input_ids.size() == masks.positions.size());
      CHECK(masks.cpc_sentences.empty());
      for (std::size_t i = 0; i < masks.positions.size(); ++i) {
        CHECK((masks.positions[i] > 0 && masks.positions[i] < std::ssize(text.ids) - 1));
        CHECK((i == 0 || masks.positions[i - 1] < masks.positions[i]));
      }
    }
  }
}

TEST_CASE("whole words are masked with all their pieces, and one too large is passed over", "[pretrain]") {
  const Text text(40);
  MaskRules rules = rules_of(true);
  rules.max_predictions = 11;  // three words, and no fourth
  const Masks masks = masks_of(text, rules, 7);
  REQUIRE(masks.positions.size() == 9);
  for (std::size_t i = 0; i < 9; i += 3) {
    CHECK((masks.positions[i] - 1) % 3 == 0);
    CHECK(masks.positions[i + 2] == masks.positions[i] + 2);
  }
  // A word of one piece still fits after words that do not.
  Text mixed(40);
  mixed.ids.insert(mixed.ids.begin() + 1, {7, 8});
  mixed.kinds.insert(mixed.kinds.begin() + 1, {kBegins, kBegins});
  CHECK(masks_of(mixed, rules, 7).positions.size() == 11);
}

TEST_CASE("eight of ten masked pieces become [MASK], one stays and one is any piece", "[pretrain]") {
  const Text text(400);
  std::int64_t masked = 0, kept = 0, other = 0;
  for (std::uint64_t key = 0; masked + kept + other < 100'000; ++key) {
    const Masks masks = masks_of(text, rules_of(false), key);
    for (std::size_t i = 0; i < masks.positions.size(); ++i) {
      const std::int64_t id = masks.input_ids[i];
      CHECK((id >= 0 && id < 50'000));
      const bool stays = id == text.ids[static_cast<std::size_t>(masks.positions[i])];
      ++(id == 4 ? masked : stays ? kept : other);
    }
  }
  const auto all = static_cast<double>(masked + kept + other);
  CHECK(static_cast<double>(masked) / all == Approx(0.8).margin(0.005));
  CHECK(static_cast<double>(kept) / all == Approx(0.1).margin(0.004));
  CHECK(static_cast<double>(other) / all == Approx(0.1).margin(0.004));
}

TEST_CASE("every position is masked as often as any other", "[pretrain]") {
  const Text text(20);  // 62 pieces, 9 of 60 chosen
  std::vector<int> chosen(text.ids.size());
  constexpr int kDraws = 20'000;
  for (std::uint64_t key = 0; key < kDraws; ++key) {
    for (const std::int64_t p : masks_of(text, rules_of(false), key).positions) ++chosen[static_cast<std::size_t>(p)];
  }
  for (std::size_t p = 1; p + 1 < chosen.size(); ++p) {
    CAPTURE(p);
    CHECK(chosen[p] == Approx(0.15 * kDraws).margin(250));  // five standard deviations
  }
}

TEST_CASE("hidden sentences are a share of all, and none of their pieces is predicted", "[pretrain]") {
  for (std::int64_t sentences = 1; sentences < 30; ++sentences) {
    CAPTURE(sentences);
    const Text text = sentences_text(sentences);
    const Masks masks = masks_of(text, rules_of(true), 3);
    const std::int64_t hidden = sentences < 2 ? 0 : number_to_mask(sentences, 0.15, sentences - 1);
    REQUIRE(std::ssize(masks.cpc_sentences) == hidden);
    CHECK(std::set(masks.cpc_sentences.begin(), masks.cpc_sentences.end()).size() == masks.cpc_sentences.size());
    std::set<std::int64_t> forbidden{0};
    std::int64_t begin = 1, visible = 0;
    for (std::int64_t s = 0; s < sentences; ++s) {
      const std::int64_t length = text.sentences[static_cast<std::size_t>(s)];
      const bool is_hidden = std::binary_search(masks.cpc_sentences.begin(), masks.cpc_sentences.end(), s);
      for (std::int64_t p = begin; is_hidden && p < begin + length; ++p) forbidden.insert(p);
      visible += is_hidden ? 0 : length;
      begin += length;
    }
    for (const std::int64_t p : masks.positions) CHECK(!forbidden.contains(p));
    CHECK(std::ssize(masks.positions) <= number_to_mask(visible, 0.15, 1000));
    if (visible >= 10) CHECK(!masks.positions.empty());  // two are wanted, so that a word of two fits
  }
  MaskRules all = rules_of(true);
  all.cpc_sentence_prob = 1;
  CHECK(masks_of(sentences_text(5), all, 3).cpc_sentences.size() == 4);
}

TEST_CASE("masks depend on their key alone, and what replaces a piece on its position", "[pretrain]") {
  const Text text(40);
  const Masks once = masks_of(text, rules_of(true), draws_key(1, 2, 3));
  CHECK(masks_of(text, rules_of(true), draws_key(1, 2, 3)).positions == once.positions);
  for (const std::uint64_t other : {draws_key(1, 2, 4), draws_key(1, 3, 3), draws_key(2, 2, 3)}) {
    CHECK(masks_of(text, rules_of(true), other).positions != once.positions);
  }
  // With more positions chosen, the earlier positions get the same replacements.
  MaskRules more = rules_of(true);
  more.masked_lm_prob = 0.5;
  const Masks many = masks_of(text, more, draws_key(1, 2, 3));
  for (std::size_t i = 0; i < once.positions.size(); ++i) {
    const auto found = std::find(many.positions.begin(), many.positions.end(), once.positions[i]);
    REQUIRE(found != many.positions.end());
    CHECK(many.input_ids[static_cast<std::size_t>(found - many.positions.begin())] == once.input_ids[i]);
  }
}

TEST_CASE("an order has every entry once, and draws stay in their range", "[pretrain]") {
  CounterDraws draws(5);
  draws.begin_order(1000);
  std::set<std::int64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(draws.next_in_order());
  CHECK(seen.size() == 1000);
  CHECK(*seen.rbegin() == 999);
  std::set<std::int64_t> drawn;
  for (int i = 0; i < 1000; ++i) drawn.insert(draws.between(-2, 2));
  CHECK(drawn == std::set<std::int64_t>{-2, -1, 0, 1, 2});
  CHECK(draws.between(7, 7) == 7);
  for (int i = 0; i < 1000; ++i) {
    const double u = draws.uniform();
    CHECK((u >= 0 && u < 1));
  }
}

}  // namespace etc::pretrain
