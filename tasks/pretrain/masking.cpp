#include "tasks/pretrain/masking.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tasks/pretrain/schema.h"

namespace etc::pretrain {

namespace {

// Python's round(); the default rounding mode rounds half to even.
std::int64_t round_half_even(double x) {
  return static_cast<std::int64_t>(std::nearbyint(x));
}

std::vector<std::int64_t> choose_sentences(std::int64_t sentences, double probability, Draws& draws) {
  if (sentences < 2) return {};
  draws.begin_order(sentences);
  std::vector<std::int64_t> chosen(static_cast<std::size_t>(number_to_mask(sentences, probability, sentences - 1)));
  for (std::int64_t& sentence : chosen) sentence = draws.next_in_order();
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

// Positions that may be predicted, in groups that are selected or left out as a whole.
struct Groups {
  std::vector<std::int64_t> positions;
  std::vector<std::int64_t> begins;  // [groups + 1] into positions

  std::int64_t count() const { return std::ssize(begins) - 1; }
};

class GroupFinder {
 public:
  GroupFinder(const MaskableText& text, bool whole_words) : text_(text), whole_words_(whole_words) {
    groups_.positions.reserve(text.ids.size());
    groups_.begins.reserve(text.ids.size() + 1);
  }

  // Adds the candidates among the positions begin … end−1. A continuation piece joins the previous candidate, even if other
  // positions lie between them (1.3, step 1).
  void add(std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      const std::int64_t kind = text_.kinds[static_cast<std::size_t>(p)];
      if (kind == kSpecial) continue;
      const bool joins = whole_words_ && kind == kContinues && !groups_.positions.empty();
      if (!joins) groups_.begins.push_back(std::ssize(groups_.positions));
      groups_.positions.push_back(p);
    }
  }

  Groups finish() {
    groups_.begins.push_back(std::ssize(groups_.positions));
    return std::move(groups_);
  }

 private:
  const MaskableText& text_;
  bool whole_words_;
  Groups groups_;
};

// Groups of all sentences that are not hidden, or of the whole text if there are no sentences.
Groups find_groups(const MaskableText& text, bool whole_words, const std::vector<std::int64_t>& hidden) {
  GroupFinder finder(text, whole_words);
  if (text.sentence_lengths.empty()) {
    finder.add(0, std::ssize(text.ids));
    return finder.finish();
  }
  std::int64_t begin = 1;  // after [CLS]
  for (std::int64_t s = 0; s < std::ssize(text.sentence_lengths); ++s) {
    const std::int64_t end = begin + text.sentence_lengths[static_cast<std::size_t>(s)];
    if (!std::binary_search(hidden.begin(), hidden.end(), s)) finder.add(begin, end);
    begin = end;
  }
  return finder.finish();
}

// 80 % [MASK], 10 % the piece itself, 10 % any piece (1.3, step 5).
std::int64_t replacement(std::int64_t id, const MaskRules& rules, Draws& draws) {
  constexpr double kMasked = 0.8, kKeptOfRest = 0.5;
  if (draws.uniform() < kMasked) return rules.mask_id;
  if (draws.uniform() < kKeptOfRest) return id;
  return draws.between(0, rules.vocab_size - 1);
}

}  // namespace

std::int64_t number_to_mask(std::int64_t count, double probability, std::int64_t most) {
  const std::int64_t share = round_half_even(static_cast<double>(count) * probability);
  return std::min(most, std::max<std::int64_t>(1, share));
}

Masks draw_masks(const MaskableText& text, const MaskRules& rules, Draws& draws) {
  Masks masks;
  masks.cpc_sentences = choose_sentences(std::ssize(text.sentence_lengths), rules.cpc_sentence_prob, draws);
  const Groups groups = find_groups(text, rules.whole_words, masks.cpc_sentences);
  const std::int64_t length = text.sentence_lengths.empty() ? std::ssize(text.ids) : std::ssize(groups.positions);
  const std::int64_t wanted = number_to_mask(length, rules.masked_lm_prob, rules.max_predictions);

  std::vector<std::pair<std::int64_t, std::int64_t>> chosen;  // position, replacement
  chosen.reserve(static_cast<std::size_t>(wanted));
  draws.begin_order(groups.count());
  for (std::int64_t tried = 0; tried < groups.count() && std::ssize(chosen) < wanted; ++tried) {
    const auto group = static_cast<std::size_t>(draws.next_in_order());
    const std::int64_t begin = groups.begins[group], end = groups.begins[group + 1];
    if (std::ssize(chosen) + end - begin > wanted) continue;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t position = groups.positions[static_cast<std::size_t>(i)];
      draws.at_position(position);
      chosen.emplace_back(position, replacement(text.ids[static_cast<std::size_t>(position)], rules, draws));
    }
  }
  std::sort(chosen.begin(), chosen.end());
  for (const auto& [position, id] : chosen) {
    masks.positions.push_back(position);
    masks.input_ids.push_back(id);
  }
  return masks;
}

}  // namespace etc::pretrain
