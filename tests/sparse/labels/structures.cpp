#include "tests/sparse/labels/structures.h"

#include <algorithm>
#include <functional>

namespace etc::test {

using sparse::LabelOptions;

MultihopCase random_multihop(std::mt19937& random, int long_padding, int global_padding) {
  const auto number = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  MultihopCase example;
  const int paragraphs = number(1, 4);
  for (int p = 0; p < paragraphs; ++p) {
    const int paragraph = static_cast<int>(example.global_breakpoints.size());
    example.global_breakpoints.push_back(0);  // the paragraph's own token
    const int sentences = number(1, 3);
    for (int s = 0; s < sentences; ++s) {
      const int sentence = static_cast<int>(example.global_breakpoints.size());
      example.global_breakpoints.push_back(0);
      for (int words = number(1, 6); words > 0; --words) {
        example.long_breakpoints.push_back(0);
        example.paragraph_ids.push_back(number(0, 9) == 0 ? -1 : paragraph);
        example.sentence_ids.push_back(number(0, 9) == 0 ? -1 : sentence);
        example.linked.push_back(number(0, 3) == 0 ? number(0, 3) : -1);
      }
    }
    example.long_breakpoints.back() = 1;
    example.global_breakpoints.back() = 1;
  }
  example.long_breakpoints.resize(example.long_breakpoints.size() + static_cast<std::size_t>(long_padding), 0);
  example.global_breakpoints.resize(example.global_breakpoints.size() + static_cast<std::size_t>(global_padding), 0);
  for (Ids* ids : {&example.paragraph_ids, &example.sentence_ids, &example.linked}) {
    ids->resize(example.long_breakpoints.size(), -1);
  }
  for (std::size_t i = 0; i < example.long_breakpoints.size(); ++i) example.ignore_l2g.push_back(number(0, 4) == 0);
  for (std::size_t g = 0; g < example.global_breakpoints.size(); ++g) example.ignore_g2l.push_back(number(0, 4) == 0);
  return example;
}

namespace {

using Pair = std::function<int(int, int)>;

Ids matrix(std::size_t rows, std::size_t columns, const Pair& value) {
  Ids out;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      out.push_back(value(static_cast<int>(row), static_cast<int>(column)));
    }
  }
  return out;
}

// Segment number of position i, counted from the end: how many breakpoints are at i or later.
int segment(const Ids& breakpoints, int i) {
  return static_cast<int>(std::count(breakpoints.begin() + i, breakpoints.end(), 1));
}

int distance_id(int distance, int k) {
  if (distance > 0) return std::min(distance, k);
  if (distance < 0) return k + std::min(-distance, k);
  return 0;
}

struct Rules {
  std::function<int(int)> long_segment, global_segment, long_side, global_side, global_paragraph;
  std::function<bool(int, int)> member, linked;  // (long, global)
  std::function<bool(int)> ignore_l2g, ignore_g2l;
};

SideInputs evaluate(std::size_t L, std::size_t G, const Rules& rules, const LabelOptions& options) {
  const int r = static_cast<int>(options.local_radius), k = static_cast<int>(options.relative_pos_max_distance);
  const int R = 2 * k + 1, length = static_cast<int>(L);
  const std::size_t W = static_cast<std::size_t>(2 * r + 1);
  const auto same_side = [&](int i, int g) { return rules.long_side(i) == rules.global_side(g); };
  const auto l2g_id = [&](int i, int g) { return rules.member(i, g) || rules.linked(i, g) ? R + 1 : R; };
  SideInputs out;
  out.l2l_mask = matrix(L, W, [&](int i, int w) {
    const int j = i + w - r;
    return j >= 0 && j < length && rules.long_segment(j) == rules.long_segment(i);
  });
  out.g2g_mask = matrix(G, G, [&](int g, int h) { return rules.global_segment(g) == rules.global_segment(h); });
  out.l2g_mask = matrix(L, G, [&](int i, int g) {
    return same_side(i, g) && (!options.use_hard_l2g_mask || rules.member(i, g) || rules.ignore_l2g(i));
  });
  out.g2l_mask = matrix(G, L, [&](int g, int i) {
    return same_side(i, g) && (!options.use_hard_g2l_mask || rules.member(i, g) || rules.ignore_g2l(g));
  });
  if (k == 0) return out;
  out.l2l_ids = matrix(L, W, [&](int, int w) { return distance_id(w - r, k); });
  out.g2g_ids = matrix(G, G, [&](int g, int h) {
    return rules.global_paragraph(g) == rules.global_paragraph(h) ? distance_id(h - g, k) : R + 2;
  });
  out.l2g_ids = matrix(L, G, l2g_id);
  out.g2l_ids = matrix(G, L, [&](int g, int i) { return l2g_id(i, g); });
  return out;
}

}  // namespace

SideInputs naive_multihop(const MultihopCase& example, const LabelOptions& options) {
  const auto at = [](const Ids& ids, int i) { return ids[static_cast<std::size_t>(i)]; };
  const auto none = [](int) { return false; };
  Rules rules;
  rules.long_segment = [&](int i) { return segment(example.long_breakpoints, i); };
  rules.long_side = [&](int i) { return segment(example.long_breakpoints, i) > 0; };
  rules.global_side = rules.global_segment = [&](int g) { return segment(example.global_breakpoints, g) > 0; };
  rules.global_paragraph = [&](int g) { return segment(example.global_breakpoints, g); };
  rules.member = [&](int i, int g) { return at(example.sentence_ids, i) == g || at(example.paragraph_ids, i) == g; };
  rules.linked = [&](int i, int g) { return !example.linked.empty() && at(example.linked, i) == g; };
  rules.ignore_l2g = none;
  rules.ignore_g2l = none;
  if (!example.ignore_l2g.empty()) rules.ignore_l2g = [&](int i) { return at(example.ignore_l2g, i) == 1; };
  if (!example.ignore_g2l.empty()) rules.ignore_g2l = [&](int g) { return at(example.ignore_g2l, g) == 1; };
  return evaluate(example.long_breakpoints.size(), example.global_breakpoints.size(), rules, options);
}

SideInputs naive_generic(const Ids& long_ids, const Ids& global_ids, const Ids& sentence_ids,
                         const LabelOptions& options) {
  Rules rules;
  rules.long_segment = rules.long_side = [&](int i) { return long_ids[static_cast<std::size_t>(i)]; };
  rules.global_segment = rules.global_side = [&](int g) { return global_ids[static_cast<std::size_t>(g)]; };
  rules.global_paragraph = [](int) { return 0; };
  rules.member = [&](int i, int g) { return sentence_ids[static_cast<std::size_t>(i)] == g; };
  rules.linked = [](int, int) { return false; };
  rules.ignore_l2g = rules.ignore_g2l = [](int) { return false; };
  return evaluate(long_ids.size(), global_ids.size(), rules, options);
}

}  // namespace etc::test
