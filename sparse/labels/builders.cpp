#include "sparse/labels/builders.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "etc_core/base/error.h"
#include "etc_core/base/integers.h"
#include "etc_core/base/parallel.h"
#include "sparse/labels/relative_ids.h"

namespace etc::sparse {

namespace {

using Ids = std::span<const std::int32_t>;

std::vector<std::int32_t> copied(Ids ids) {
  return {ids.begin(), ids.end()};
}

// out[i] = 1 where values[i] == value, else 0: the basic operation of every mask. Masks compare segment ids for equality,
// so padding sees padding and no row is ever all zero. (__restrict: bytes may alias anything, and the compiler vectorises
// loops over them only if aliasing is excluded.)
void write_equal(const std::int32_t* __restrict values, std::int64_t count, std::int32_t value,
                 std::uint8_t* __restrict out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<std::uint8_t>(values[i] == value);
}

// Columns [first, last) of row `query` of a window that exist in a sequence of n tokens.
struct WindowColumns {
  std::int64_t first, last;
};
constexpr WindowColumns window_columns(std::int64_t query, std::int64_t n, std::int64_t radius) {
  const std::int64_t first = radius - query, last = radius + n - query, W = 2 * radius + 1;
  return {first > 0 ? first : 0, last < W ? last : W};
}

struct NamedIds {
  const char* name;
  Ids ids;
  bool optional = false;  // may be empty
};

// Every array must have the length of the first.
void check_lengths(const char* letter, std::initializer_list<NamedIds> arrays) {
  const NamedIds& first = *arrays.begin();
  for (const NamedIds& array : arrays) {
    if (array.ids.size() == first.ids.size() || (array.optional && array.ids.empty())) continue;
    fail("labels", "{} must match {}: {} [{}={}], {} [{}={}]", array.name, first.name, first.name, letter,
         first.ids.size(), array.name, letter, array.ids.size());
  }
}

// 1 for tokens, 0 for padding.
std::vector<std::int32_t> real_tokens(const std::vector<std::int32_t>& example_ids) {
  std::vector<std::int32_t> real(example_ids.size());
  std::transform(example_ids.begin(), example_ids.end(), real.begin(), [](std::int32_t id) { return std::min(id, 1); });
  return real;
}

// The rows of one example's four types as (mask, id), one byte each.
class PairRows {
 public:
  PairRows(const AttentionStructure& example, const LabelOptions& options)
      : example_(example),
        options_(options),
        k_(options.relative_pos_max_distance),
        L_(example.length()),
        G_(example.globals()),
        W_(2 * options.local_radius + 1),
        local_ids_(static_cast<std::size_t>(W_)),
        global_ids_(static_cast<std::size_t>(G_ > 0 ? 2 * G_ - 1 : 0)) {
    write_distance_ids(-options.local_radius, W_, k_, local_ids_.data());
    write_distance_ids(1 - G_, static_cast<std::int64_t>(global_ids_.size()), k_, global_ids_.data());
  }

  bool relative() const { return k_ > 0; }
  std::int64_t L() const { return L_; }
  std::int64_t G() const { return G_; }
  std::int64_t W() const { return W_; }

  // mask, id [W] of long token i's window.
  void l2l(std::int64_t i, std::uint8_t* __restrict mask, std::uint8_t* __restrict id) const {
    const WindowColumns columns = window_columns(i, L_, options_.local_radius);
    const std::int32_t* segments = example_.long_segments.data();
    std::memset(mask, 0, static_cast<std::size_t>(W_));
    write_equal(segments + (i - options_.local_radius + columns.first), columns.last - columns.first, segments[i],
                mask + columns.first);
    std::memcpy(id, local_ids_.data(), static_cast<std::size_t>(W_));
  }

  // mask, id [G] of long token i.
  void l2g(std::int64_t i, std::uint8_t* __restrict mask, std::uint8_t* __restrict id) const {
    const auto at = static_cast<std::size_t>(i);
    const bool hard = options_.use_hard_l2g_mask && !is_set(example_.ignore_hard_l2g, at);
    write_equal(example_.global_sides.data(), G_, example_.long_sides[at], mask);
    std::memset(id, static_cast<int>(not_member_id(k_)), static_cast<std::size_t>(G_));
    const auto belongs_to = [&](const std::vector<std::int32_t>& ids) {
      if (!ids.empty() && ids[at] >= 0 && ids[at] < G_) id[ids[at]] = static_cast<std::uint8_t>(member_id(k_));
    };
    belongs_to(example_.sentence_ids);
    belongs_to(example_.paragraph_ids);
    // Before the links, which change ids but never make a pair visible.
    if (hard) {
      const auto member = static_cast<std::uint8_t>(member_id(k_));
      for (std::int64_t g = 0; g < G_; ++g) mask[g] &= static_cast<std::uint8_t>(id[g] == member);
    }
    belongs_to(example_.linked_ids);
  }

  // mask, id [G] of global token g.
  void g2g(std::int64_t g, std::uint8_t* __restrict mask, std::uint8_t* __restrict id) const {
    const auto at = static_cast<std::size_t>(g);
    write_equal(example_.global_segments.data(), G_, example_.global_segments[at], mask);
    std::memcpy(id, global_ids_.data() + (G_ - 1 - g), static_cast<std::size_t>(G_));
    if (example_.global_paragraphs.empty()) return;
    const std::int32_t* paragraphs = example_.global_paragraphs.data();
    const auto other = static_cast<std::uint8_t>(other_paragraph_id(k_));
    const std::int32_t own = paragraphs[g];
    for (std::int64_t h = 0; h < G_; ++h) id[h] = paragraphs[h] == own ? id[h] : other;
  }

  // mask, id [L] of global token g.
  void g2l(std::int64_t g, std::uint8_t* __restrict mask, std::uint8_t* __restrict id) const {
    const auto at = static_cast<std::size_t>(g);
    const bool hard = options_.use_hard_g2l_mask && !is_set(example_.ignore_hard_g2l, at);
    write_equal(example_.long_sides.data(), L_, example_.global_sides[at], mask);
    // First 1 for members and 0 for others; adding R gives the id, since "member" is the id after "not member".
    std::memset(id, 0, static_cast<std::size_t>(L_));
    add_equal(example_.sentence_ids, g, id);
    add_equal(example_.paragraph_ids, g, id);
    if (hard) {
      for (std::int64_t i = 0; i < L_; ++i) mask[i] &= id[i];
    }
    add_equal(example_.linked_ids, g, id);
    const auto base = static_cast<std::uint8_t>(not_member_id(k_));
    for (std::int64_t i = 0; i < L_; ++i) id[i] = static_cast<std::uint8_t>(id[i] + base);
  }

 private:
  static bool is_set(const std::vector<std::int32_t>& flags, std::size_t at) {
    return !flags.empty() && flags[at] == 1;
  }

  static void add_equal(const std::vector<std::int32_t>& ids, std::int64_t value, std::uint8_t* __restrict flags) {
    const std::int32_t* __restrict id = ids.data();
    const auto count = static_cast<std::int64_t>(ids.size());
    const auto wanted = static_cast<std::int32_t>(value);
    for (std::int64_t i = 0; i < count; ++i) flags[i] |= static_cast<std::uint8_t>(id[i] == wanted);
  }

  const AttentionStructure& example_;
  const LabelOptions& options_;
  std::int64_t k_, L_, G_, W_;
  std::vector<std::uint8_t> local_ids_;   // [W] ids of distances -radius … radius
  std::vector<std::uint8_t> global_ids_;  // [2G-1] ids of distances 1-G … G-1; row g begins at G-1-g
};

void check_options(const LabelOptions& options) {
  if (options.local_radius < 1) fail("labels", "local_radius: expected at least 1, got {}", options.local_radius);
  if (options.relative_pos_max_distance < 0 || options.relative_pos_max_distance > kMaxRelativeDistance) {
    fail("labels", "relative_pos_max_distance: expected 0 … {} (labels are one byte), got {}", kMaxRelativeDistance,
         options.relative_pos_max_distance);
  }
}

// Structures that did not come from a builder must have matching sizes, too: rows index the arrays without checks.
void check_structure(const AttentionStructure& example) {
  check_lengths("L", {{"long_segments", example.long_segments},
                      {"long_sides", example.long_sides},
                      {"sentence_ids", example.sentence_ids, true},
                      {"paragraph_ids", example.paragraph_ids, true},
                      {"linked_ids", example.linked_ids, true},
                      {"ignore_hard_l2g", example.ignore_hard_l2g, true}});
  check_lengths("G", {{"global_segments", example.global_segments},
                      {"global_sides", example.global_sides},
                      {"ignore_hard_g2l", example.ignore_hard_g2l, true},
                      {"global_paragraphs", example.global_paragraphs, true}});
}

// label = id where mask is 1 (mask - 1 is 0), kMasked where it is 0 (mask - 1 is 255).
void fold(const std::uint8_t* __restrict mask, const std::uint8_t* __restrict id, std::int64_t count, bool relative,
          std::uint8_t* __restrict label) {
  static_assert(kMasked == 255);
  if (relative) {
    for (std::int64_t i = 0; i < count; ++i) label[i] = static_cast<std::uint8_t>(id[i] | (mask[i] - 1));
  } else {
    for (std::int64_t i = 0; i < count; ++i) label[i] = static_cast<std::uint8_t>(mask[i] - 1);
  }
}

// A range of query rows of one example, and where the example's rows begin in each tensor.
struct Task {
  const PairRows* rows;
  bool long_side;
  std::int64_t first, last;
  std::int64_t window_offset, side_offset;  // elements: into l2l and l2g, or into g2g and g2l
};

// Long rows are short (W+G) and global rows long (G+L); with these row counts both give tasks of about 10 to 60 kB.
constexpr std::int64_t kLongRowsPerTask = 64;
constexpr std::int64_t kGlobalRowsPerTask = 8;

// Labels of the task's rows.
void fill_task(const Task& task, AttentionLabels& labels) {
  const PairRows& of = *task.rows;
  const std::int64_t widest = std::max({of.W(), of.G(), of.L()});
  std::vector<std::uint8_t> scratch(static_cast<std::size_t>(2 * widest));
  std::uint8_t *mask = scratch.data(), *id = mask + widest;
  for (std::int64_t row = task.first; row < task.last; ++row) {
    if (task.long_side) {
      of.l2l(row, mask, id);
      fold(mask, id, of.W(), of.relative(), labels.l2l.data() + task.window_offset + row * of.W());
      of.l2g(row, mask, id);
      fold(mask, id, of.G(), of.relative(), labels.l2g.data() + task.side_offset + row * of.G());
    } else {
      of.g2g(row, mask, id);
      fold(mask, id, of.G(), of.relative(), labels.g2g.data() + task.window_offset + row * of.G());
      of.g2l(row, mask, id);
      fold(mask, id, of.L(), of.relative(), labels.g2l.data() + task.side_offset + row * of.L());
    }
  }
}

}  // namespace

std::vector<std::int32_t> example_ids_from_breakpoints(Ids breakpoints) {
  std::vector<std::int32_t> ids(breakpoints.size());
  std::int32_t id = 0;
  for (std::size_t i = breakpoints.size(); i-- > 0;) ids[i] = id += breakpoints[i];
  return ids;
}

AttentionStructure structure_from_example_ids(Ids long_example_ids, Ids global_example_ids, Ids sentence_ids) {
  check_lengths("L", {{"long_example_ids", long_example_ids}, {"sentence_ids", sentence_ids}});
  AttentionStructure example;
  example.long_segments = example.long_sides = copied(long_example_ids);
  example.global_segments = example.global_sides = copied(global_example_ids);
  example.sentence_ids = copied(sentence_ids);
  return example;
}

FixedBlocks fixed_block_structure(Ids input_mask, std::int64_t tokens_per_block, std::int32_t global_token_id) {
  if (tokens_per_block < 1) fail("labels", "num_tokens_per_block: expected at least 1, got {}", tokens_per_block);
  const std::int64_t L = static_cast<std::int64_t>(input_mask.size());
  const std::int64_t G = ceil_div(L, tokens_per_block);
  std::vector<std::int32_t> sentence_ids(input_mask.size());                   // [L]
  std::vector<std::int32_t> global_mask(static_cast<std::size_t>(G), 0);       // [G]
  std::vector<std::int32_t> global_token_ids(static_cast<std::size_t>(G), 0);  // [G]
  for (std::size_t i = 0; i < input_mask.size(); ++i) {
    const auto block = i / static_cast<std::size_t>(tokens_per_block);
    sentence_ids[i] = static_cast<std::int32_t>(block);
    if (input_mask[i] == 0) continue;
    global_mask[block] = 1;
    global_token_ids[block] = global_token_id;
  }
  return {structure_from_example_ids(input_mask, global_mask, sentence_ids), std::move(global_token_ids)};
}

AttentionStructure multihop_structure(const MultihopArrays& arrays) {
  check_lengths("L", {{"long_paragraph_breakpoints", arrays.long_paragraph_breakpoints},
                      {"long_paragraph_ids", arrays.long_paragraph_ids},
                      {"long_sentence_ids", arrays.long_sentence_ids},
                      {"ignore_hard_l2g", arrays.ignore_hard_l2g, true},
                      {"linked_ids", arrays.linked_ids, true}});
  check_lengths("G", {{"global_paragraph_breakpoints", arrays.global_paragraph_breakpoints},
                      {"ignore_hard_g2l", arrays.ignore_hard_g2l, true}});
  std::vector<std::int32_t> long_paragraphs = example_ids_from_breakpoints(arrays.long_paragraph_breakpoints);
  std::vector<std::int32_t> global_paragraphs = example_ids_from_breakpoints(arrays.global_paragraph_breakpoints);
  const std::vector<std::int32_t> long_real = real_tokens(long_paragraphs);
  const std::vector<std::int32_t> global_real = real_tokens(global_paragraphs);
  AttentionStructure example = structure_from_example_ids(long_real, global_real, arrays.long_sentence_ids);
  if (arrays.flat_sequence) return example;
  example.long_segments = std::move(long_paragraphs);
  example.global_paragraphs = std::move(global_paragraphs);
  example.paragraph_ids = copied(arrays.long_paragraph_ids);
  example.linked_ids = copied(arrays.linked_ids);
  example.ignore_hard_l2g = copied(arrays.ignore_hard_l2g);
  example.ignore_hard_g2l = copied(arrays.ignore_hard_g2l);
  return example;
}

AttentionLabels build_labels(std::span<const AttentionStructure> examples, const LabelOptions& options) {
  check_options(options);
  const std::int64_t W = 2 * options.local_radius + 1;
  std::vector<PairRows> rows;
  rows.reserve(examples.size());  // tasks keep pointers
  std::vector<Task> tasks;
  std::int64_t T = 0, long_global = 0, global_global = 0;  // elements before this example
  for (const AttentionStructure& example : examples) {
    check_structure(example);
    const std::int64_t L = example.length(), G = example.globals();
    const PairRows* of_example = &rows.emplace_back(example, options);
    for (std::int64_t i = 0; i < L; i += kLongRowsPerTask) {
      tasks.push_back({of_example, true, i, std::min(L, i + kLongRowsPerTask), T * W, long_global});
    }
    for (std::int64_t g = 0; g < G; g += kGlobalRowsPerTask) {
      tasks.push_back({of_example, false, g, std::min(G, g + kGlobalRowsPerTask), global_global, long_global});
    }
    T += L;
    long_global += L * G;
    global_global += G * G;
  }

  AttentionLabels labels;
  labels.l2l = Buffer<std::uint8_t>(T * W, Purpose::labels);          // [T, W]
  labels.l2g = Buffer<std::uint8_t>(long_global, Purpose::labels);    // per example [L, G]
  labels.g2g = Buffer<std::uint8_t>(global_global, Purpose::labels);  // per example [G, G]
  labels.g2l = Buffer<std::uint8_t>(long_global, Purpose::labels);    // per example [G, L]
  labels.long_relative = labels.global_relative = options.relative_pos_max_distance > 0;

  parallel_for(static_cast<std::int64_t>(tasks.size()),
               [&](std::int64_t number) { fill_task(tasks[static_cast<std::size_t>(number)], labels); });
  return labels;
}

}  // namespace etc::sparse
