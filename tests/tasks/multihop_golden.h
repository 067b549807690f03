// What golden files of WikiHop and HotpotQA must hold besides the values that their tests compare: every data set, every
// record, attributes that agree with the group's name, and model inputs that follow the formulas, padding included.
#pragma once

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "data/text/sha256.h"
#include "etc_core/base/json.h"
#include "tests/support/catch.h"
#include "tests/support/golden_h5.h"
#include "tests/tasks/golden_inputs.h"
#include "tests/tasks/raw_records.h"

namespace etc::test {

using GoldenNumbers = std::vector<std::int64_t>;
using Names = std::set<std::string>;

// Requires exactly these groups and data sets directly below a group.
inline void require_names(const GoldenFile& file, const std::string& group, const Names& expected) {
  Names found;
  for (const auto& names : {file.groups(group), file.data_sets(group)}) found.insert(names.begin(), names.end());
  CAPTURE(group);
  REQUIRE(found == expected);
}

inline bool is_sentencepiece(const GoldenFile& file, const std::string& group) {
  return file.string_attribute(group, "tokenizer") == "sentencepiece";
}

// Requires the attributes of a group to agree with its name, as in "wp_L512_G64_train", and the vocabulary to be the
// file that it was computed with, if the group tells (`required`: it must).
inline void require_settings(const GoldenFile& file, const std::string& group, const std::filesystem::path& vocab,
                             bool required) {
  CAPTURE(group);
  const std::string lengths =
      fmt::format("_L{}_G{}_", file.int_attribute(group, "long_seq_len"), file.int_attribute(group, "global_seq_len"));
  REQUIRE(group.find(lengths) != std::string::npos);
  REQUIRE(file.string_attribute(group, "tokenizer") == (group.starts_with("wp_") ? "wordpiece" : "sentencepiece"));
  if (!required && !file.has_attribute(group, "vocab_sha256")) return;
  REQUIRE(file.string_attribute(group, "vocab_sha256") == data::sha256_of_file(vocab));
  REQUIRE(file.has_attribute(group, "do_lower_case") == group.starts_with("wp_"));
}

inline data::TokenizerOptions golden_tokenizer_options(const GoldenFile& file, const std::string& group) {
  data::TokenizerOptions options;
  if (file.has_attribute(group, "do_lower_case")) {
    options.do_lower_case = file.int_attribute(group, "do_lower_case") != 0;
  }
  return options;
}

// Requires each of the records 0 … count-1 once in the two lists, both in source order.
inline void require_all_records(const GoldenNumbers& converted, const GoldenNumbers& others, std::int64_t count) {
  GoldenNumbers both, all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  std::merge(converted.begin(), converted.end(), others.begin(), others.end(), std::back_inserter(both));
  REQUIRE(both == all);
}

// The numbers of the records with these ids in the member `key`, each behind the one before.
inline GoldenNumbers numbers_of_ids(const std::vector<data::JsonRecord>& records, const char* key,
                                    const std::vector<std::string>& ids) {
  GoldenNumbers numbers;
  auto from = records.begin();
  for (const std::string& id : ids) {
    CAPTURE(id);
    from = std::find_if(from, records.end(), [&](const data::JsonRecord& r) { return r.value.value(key, "") == id; });
    REQUIRE(from != records.end());
    numbers.push_back(from++ - records.begin());
  }
  return numbers;
}

// One record's arrays as the reference stores them, with padding, and the settings of its model inputs.
struct PaddedRecord {
  GoldenNumbers long_breakpoints, sentence_ids, paragraph_ids, linked_ids, global_breakpoints;
  GoldenNumbers exempt;  // [G] from hard g2l
  std::int64_t radius = 0, distance = 0;
};

// The model inputs by the formulas of task-wikihop 3, value by value, for every position of the padded matrices.
class InputFormulas {
 public:
  // flat: one sequence without paragraphs, links and exemptions.
  InputFormulas(const PaddedRecord& record, bool flat)
      : r_(record), flat_(flat), longs_(segments(r_.long_breakpoints)), globals_(segments(r_.global_breakpoints)) {}

  std::int64_t L() const { return std::ssize(longs_); }
  std::int64_t G() const { return std::ssize(globals_); }

  std::int64_t l2l_mask(std::int64_t i, std::int64_t col) const {
    const std::int64_t j = i + col - r_.radius;
    return j >= 0 && j < L() && longs_[at(i)] == longs_[at(j)];
  }
  std::int64_t l2l_ids(std::int64_t, std::int64_t col) const { return positional(col - r_.radius); }
  std::int64_t g2g_mask(std::int64_t j, std::int64_t k) const { return real(globals_, j) == real(globals_, k); }
  std::int64_t g2g_ids(std::int64_t j, std::int64_t k) const {
    return flat_ || globals_[at(j)] == globals_[at(k)] ? positional(k - j) : unlinked() + 2;
  }
  std::int64_t l2g_mask(std::int64_t i, std::int64_t j) const { return real(longs_, i) == real(globals_, j); }
  std::int64_t l2g_hard(std::int64_t i, std::int64_t j) const { return l2g_mask(i, j) && owned(i, j); }
  std::int64_t g2l_hard(std::int64_t j, std::int64_t i) const {
    return l2g_mask(i, j) && (owned(i, j) || (!flat_ && r_.exempt[at(j)] == 1));
  }
  std::int64_t g2l_hard_no_exempt(std::int64_t j, std::int64_t i) const { return l2g_mask(i, j) && owned(i, j); }
  std::int64_t l2g_ids(std::int64_t i, std::int64_t j) const {
    return owned(i, j) || (!flat_ && !r_.linked_ids.empty() && r_.linked_ids[at(i)] == j) ? unlinked() + 1 : unlinked();
  }
  std::int64_t l2g_ids_unlinked(std::int64_t i, std::int64_t j) const { return unlinked() + (owned(i, j) ? 1 : 0); }

 private:
  static std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }
  static bool real(const GoldenNumbers& segments, std::int64_t i) { return segments[at(i)] > 0; }

  // The number of breakpoints from each position on; with `flat`, 1 for each real position.
  GoldenNumbers segments(const GoldenNumbers& breakpoints) const {
    GoldenNumbers numbers(breakpoints.size());
    std::partial_sum(breakpoints.rbegin(), breakpoints.rend(), numbers.rbegin());
    if (flat_)
      std::replace_if(
          numbers.begin(), numbers.end(), [](std::int64_t n) { return n > 0; }, 1);
    return numbers;
  }
  std::int64_t unlinked() const { return 2 * r_.distance + 1; }
  std::int64_t positional(std::int64_t offset) const {
    return offset >= 0 ? std::min(offset, r_.distance) : r_.distance + std::min(-offset, r_.distance);
  }
  bool owned(std::int64_t i, std::int64_t j) const {
    return r_.sentence_ids[at(i)] == j || (!flat_ && r_.paragraph_ids[at(i)] == j);
  }

  const PaddedRecord& r_;
  bool flat_;
  GoldenNumbers longs_, globals_;
};

// Requires a golden matrix to hold the formula's value at every position.
template <typename Formula>
void require_formula(const GoldenInputs& inputs, const std::string& name, std::int64_t rows, std::int64_t cols,
                     const Formula& formula) {
  CAPTURE(name);
  const Matrix& matrix = inputs.at(name);
  REQUIRE(matrix.array.shape == GoldenNumbers{rows, cols});
  std::int64_t different = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) different += matrix.at(r, c) == formula(r, c) ? 0 : 1;
  }
  REQUIRE(different == 0);
}

// The model inputs that both tasks have.
inline void require_common_inputs(const GoldenInputs& inputs, const PaddedRecord& record) {
  const InputFormulas f(record, false);
  const std::int64_t window = 2 * record.radius + 1;
  REQUIRE(inputs.at("ignore_hard_g2l").array.values ==
          std::vector<std::uint8_t>(record.exempt.begin(), record.exempt.end()));
  require_formula(inputs, "l2l_att_mask", f.L(), window, [&](auto i, auto c) { return f.l2l_mask(i, c); });
  require_formula(inputs, "l2l_relative_att_ids", f.L(), window, [&](auto i, auto c) { return f.l2l_ids(i, c); });
  require_formula(inputs, "g2g_att_mask", f.G(), f.G(), [&](auto j, auto k) { return f.g2g_mask(j, k); });
  require_formula(inputs, "g2g_relative_att_ids", f.G(), f.G(), [&](auto j, auto k) { return f.g2g_ids(j, k); });
  require_formula(inputs, "l2g_att_mask", f.L(), f.G(), [&](auto i, auto j) { return f.l2g_mask(i, j); });
  require_formula(inputs, "l2g_att_mask_hard", f.L(), f.G(), [&](auto i, auto j) { return f.l2g_hard(i, j); });
  require_formula(inputs, "l2g_relative_att_ids", f.L(), f.G(), [&](auto i, auto j) { return f.l2g_ids(i, j); });
  require_formula(inputs, "g2l_att_mask_hard", f.G(), f.L(), [&](auto j, auto i) { return f.g2l_hard(j, i); });
}

inline const Names kCommonInputs = {"ignore_hard_g2l",   "l2l_att_mask",         "l2l_relative_att_ids",
                                    "g2g_att_mask",      "g2g_relative_att_ids", "l2g_att_mask",
                                    "l2g_att_mask_hard", "l2g_relative_att_ids", "g2l_att_mask_hard"};

// The padded arrays of golden record i, without links and exemptions.
inline PaddedRecord padded_record(const GoldenFile& file, const std::string& group, std::size_t i) {
  const auto row = [&](const char* name) { return file.read_ragged<std::int64_t>(group + "/features/" + name)[i]; };
  PaddedRecord record;
  record.long_breakpoints = row("long_paragraph_breakpoints");
  record.sentence_ids = row("long_sentence_ids");
  record.paragraph_ids = row("long_paragraph_ids");
  record.global_breakpoints = row("global_paragraph_breakpoints");
  record.radius = file.int_attribute(group + "/derived", "local_radius");
  record.distance = file.int_attribute(group + "/derived", "relative_pos_max_distance");
  return record;
}

// Requires three records with model inputs, each with the id that the group gives it.
inline void require_derived_records(const GoldenFile& file, const std::string& group) {
  CAPTURE(group);
  REQUIRE(file.groups(group + "/derived").size() == 3);
  const auto ids = file.read_strings(group + "/id");
  for (const std::string& index : file.groups(group + "/derived")) {
    REQUIRE(file.string_attribute(group + "/derived/" + index, "id") == ids.at(std::stoul(index)));
  }
}

}  // namespace etc::test
