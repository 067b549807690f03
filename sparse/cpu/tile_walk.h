// How a task iterates over the tiles of one example and head: contiguous copies of keys and values, runs cut into key
// blocks. There is no vector code here; the arithmetic is in group-inl.h.
//
//   runs of a group   |-----run-----|    |--run--|            keys that some query of the group sees, whole steps of 8
//   panel          [==============================]           the task's keys, packed contiguously
//   key blocks        |  ≤max  | .. |    |  ≤max |            what one matrix product processes
#pragma once

#include <algorithm>
#include <cstdint>

#include "etc_core/base/integers.h"
#include "etc_core/base/random.h"
#include "sparse/attention.h"
#include "sparse/cpu/bf16_panel.h"
#include "sparse/cpu/head_rows.h"
#include "sparse/cpu/rows_ahead.h"
#include "sparse/visible_tiles.h"

namespace etc::sparse {

// The pass for which a call's memory and tasks are laid out.
enum class Pass { forward, backward };

// Copies of labels or keys are padded to this many rows, since runs are whole steps.
inline std::int64_t padded_rows(std::int64_t rows) {
  return round_up(rows, kRunStep);
}

// Keys [begin, end) of one key set of an example: the keys of a task.
struct KeyRange {
  int set = 0;
  std::int64_t example_row = 0;     // row of the example's first key
  std::int64_t begin = 0, end = 0;  // counted from the example's first key
  std::int64_t dropout_base = 0;    // dropout's number of the example's first key
  std::int64_t shift = 0;           // position of the example's first key minus that of its first query
};

// Contiguous keys and values of one key set for a range of one example and head; in backward also their gradients. Rows
// are copied when first needed (`require`), and the next rows are prefetched at the same time.
class KeyPanel {
 public:
  // Allocates `keys` keys plus padding, since runs extend up to one step beyond the last key. In bf16 there are no fp32
  // copies: the panel only records its range of keys, and require_bf16 rounds them. Gradients are always fp32.
  static KeyPanel take(Arena& arena, std::int64_t keys, std::int64_t stride, Pass pass, ComputeType compute) {
    const bool bf16 = compute == ComputeType::bf16;
    const std::int64_t size = (keys + (bf16 ? kBf16RowsBeyond : kRunStep)) * stride;
    KeyPanel panel;
    if (bf16) {
      panel.bf16_ = Bf16Panel::take(arena, keys, stride, pass == Pass::backward);
    } else {
      panel.k_ = arena.take<float>(size);
      panel.v_ = arena.take<float>(size);
    }
    if (pass == Pass::backward) {
      panel.dk_ = arena.take<float>(size);
      panel.dv_ = arena.take<float>(size);
    }
    return panel;
  }

  // Allocates the products of every key with `places` rows of a table, and in backward their gradients.
  void take_products(Arena& arena, std::int64_t keys, std::int64_t places, Pass pass) {
    products_ = arena.take<float>((keys + kRunStep) * places);
    if (pass == Pass::backward) dproducts_ = arena.take<float>((keys + kRunStep) * places);
  }

  // Assigns a range of keys of one head to the panel.
  void assign(const AttentionInputs& in, std::int64_t head, const KeyRange& range) {
    k_rows_ = in.keys[range.set].k;
    v_rows_ = in.keys[range.set].v;
    set_ = range.set;
    head_ = head;
    head_size_ = in.head_size;
    stride_ = row_stride(in.head_size);
    first_row_ = range.example_row + range.begin;
    first_key_ = range.begin;
    keys_ = range.end - range.begin;
    dropout_base_ = range.dropout_base;
    shift_ = range.shift;
    copied_ = prefetched_ = filled_ = multiplied_ = finished_ = 0;
    std::fill_n(bf16_.touched, bf16_.tiles, std::uint8_t{0});
  }

  // Makes rows [0, end) usable: copies keys and values, and zeroes gradients and all rows beyond the last key. Always
  // inline, like the copies (head_rows.h).
  __attribute__((always_inline)) void require(std::int64_t end) {
    // Groups are processed in query order and see nearly the same keys, so most calls end here.
    if (end <= copied_ || (k_ == nullptr && dk_ == nullptr)) return;
    const std::int64_t from = copied_;
    copied_ = end;
    if (k_ != nullptr) copy(from, end);
    if (dk_ != nullptr) {
      std::fill_n(dk_ + from * stride_, (end - from) * stride_, 0.0f);
      std::fill_n(dv_ + from * stride_, (end - from) * stride_, 0.0f);
    }
    // Prefetch the rows that the next groups need.
    const std::int64_t ahead = std::min(end + kAhead, keys_);
    if (ahead <= prefetched_) return;
    prefetched_ = std::max(prefetched_, end);
    const HeadColumns columns{head_, head_size_};
    prefetch_rows(k_rows_, columns, first_row_ + prefetched_, first_row_ + ahead);
    prefetch_rows(v_rows_, columns, first_row_ + prefetched_, first_row_ + ahead);
    prefetched_ = ahead;
  }

  // A row of the inputs for this head; not given beyond the last key.
  HeadRow key_row(std::int64_t row) const { return row_of(k_rows_, row); }
  HeadRow value_row(std::int64_t row) const { return row_of(v_rows_, row); }
  // In bf16: rows [0, filled) are rounded in bf16(); set by the code that rounds them.
  std::int64_t filled() const { return filled_; }
  void set_filled(std::int64_t end) { filled_ = end; }
  // Adds the keys and values of rows [first, end), up to the last key, to the prefetch list.
  void add_rows_to(RowsAhead& ahead, std::int64_t first, std::int64_t end) const {
    const std::int64_t count = std::min(end, keys_) - first;
    const HeadColumns columns{head_, head_size_};
    ahead.add_read(k_rows_, columns, first_row_ + first, count);
    ahead.add_read(v_rows_, columns, first_row_ + first, count);
  }

  // Rows [0, multiplied) have products; set by the code that computes them.
  std::int64_t multiplied() const { return multiplied_; }
  void set_multiplied(std::int64_t end) { multiplied_ = end; }
  // For rows [0, finished) the sums in dproducts have been added to dk.
  std::int64_t finished() const { return finished_; }
  void set_finished(std::int64_t end) { finished_ = end; }
  // The `places` products of a row.
  float* products(std::int64_t row, std::int64_t places) const { return products_ + row * places; }
  float* dproducts(std::int64_t row, std::int64_t places) const { return dproducts_ + row * places; }
  bool has_dproducts() const { return dproducts_ != nullptr; }

  int set() const { return set_; }
  std::int64_t head() const { return head_; }
  std::int64_t keys() const { return keys_; }
  const Bf16Panel& bf16() const { return bf16_; }
  std::int64_t first_key() const { return first_key_; }
  std::int64_t end_key() const { return first_key_ + keys_; }
  std::int64_t dropout_index(std::int64_t row) const { return dropout_base_ + first_key_ + row; }
  // Position of a row minus that of the example's first query.
  std::int64_t position(std::int64_t row) const { return shift_ + first_key_ + row; }
  const float* k(std::int64_t row) const { return k_ + row * stride_; }
  const float* v(std::int64_t row) const { return v_ + row * stride_; }
  float* dk(std::int64_t row) const { return dk_ + row * stride_; }
  float* dv(std::int64_t row) const { return dv_ + row * stride_; }

 private:
  static constexpr std::int64_t kAhead = 64;  // rows prefetched beyond the required ones

  HeadRow row_of(const Rows& rows, std::int64_t row) const {
    return row < keys_ ? row_in(rows, {head_, head_size_}, first_row_ + row) : HeadRow();
  }

  __attribute__((always_inline)) void copy(std::int64_t from, std::int64_t end) {
    const HeadColumns columns{head_, head_size_};
    const std::int64_t rows = std::min(end, keys_) - from;
    copy_rows(k_rows_, columns, first_row_ + from, rows, k_ + from * stride_);
    copy_rows(v_rows_, columns, first_row_ + from, rows, v_ + from * stride_);
    // Runs are whole steps: rows beyond the last key must be zero, so that their products are zero.
    const std::int64_t beyond = std::max(from, keys_);
    if (end <= beyond) return;
    std::fill_n(k_ + beyond * stride_, (end - beyond) * stride_, 0.0f);
    std::fill_n(v_ + beyond * stride_, (end - beyond) * stride_, 0.0f);
  }

  // k_ and v_ are null in bf16, where bf16_ has the copies.
  float* k_ = nullptr;          // [keys + kRunStep, stride]
  float* v_ = nullptr;          // [keys + kRunStep, stride]
  float* dk_ = nullptr;         // [keys + kRunStep, stride]; backward only
  float* dv_ = nullptr;         // [keys + kRunStep, stride]; backward only
  float* products_ = nullptr;   // [keys + kRunStep, places]
  float* dproducts_ = nullptr;  // [keys + kRunStep, places]; backward only
  Bf16Panel bf16_;
  Rows k_rows_, v_rows_;
  int set_ = 0;
  std::int64_t head_ = 0, head_size_ = 0, stride_ = 0, first_row_ = 0;
  std::int64_t first_key_ = 0, keys_ = 0, dropout_base_ = 0, shift_ = 0;
  std::int64_t copied_ = 0, prefetched_ = 0, filled_ = 0, multiplied_ = 0, finished_ = 0;
};

// A part of one run, at most `max_keys` keys: what the inner loops process.
struct KeyBlock {
  const TypeTiles* tiles = nullptr;
  KeyPanel* panel = nullptr;
  int set = 0;                // which key set
  std::int64_t column = 0;    // of the first key, within the type
  std::int64_t row = 0;       // of the first key, within the panel
  std::int64_t keys = 0;      // in fp32 a multiple of kRunStep
  std::int64_t distance = 0;  // position of the first key minus that of the group's first query

  // The block's keys from `first` on.
  KeyBlock from(std::int64_t first) const {
    return {tiles, panel, set, column + first, row + first, keys - first, distance + first};
  }
};

// A group of queries: its number in the tiles, and its first query counted from the example's.
struct GroupNumber {
  std::int64_t group, first_query;
};

// How runs are cut: into key blocks of at most `most` keys, which end at panel rows that are multiples of `alignment`
// (in bf16: kTilePairs, whose columns are adjacent).
struct KeySteps {
  std::int64_t most, alignment = 1;
};

// Appends the key blocks of a group's runs that start within the panel; returns how many. The first run is found by
// binary search: a group's runs are sorted by key, and with split keys most are in other panels.
inline std::int64_t collect_key_blocks(const AttentionTiles& tiles, const GroupNumber& of, KeyPanel& panel,
                                       const KeySteps& steps, KeyBlock* blocks) {
  const int set = panel.set();
  const TypeTiles& type = tiles.types[set];
  const std::int64_t number = type.first_group(panel.head()) + of.group;
  const TileRun* run = type.runs.data() + type.run_offsets[number];
  const TileRun* end = type.runs.data() + type.run_offsets[number + 1];
  run = std::lower_bound(run, end, panel.first_key(),
                         [](const TileRun& r, std::int64_t key) { return r.first_key < key; });
  std::int64_t count = 0;
  for (; run != end && run->first_key < panel.end_key(); ++run) {
    for (std::int64_t at = 0; at < run->keys;) {
      const std::int64_t row = run->first_key + at - panel.first_key();
      const std::int64_t keys = std::min(steps.most - row % steps.alignment, run->keys - at);
      blocks[count++] = {&type, &panel, set, run->column + at, row, keys, panel.position(row) - of.first_query};
      at += keys;
    }
  }
  return count;
}

// An upper bound for the number of blocks that collect_key_blocks appends: a run may begin and end within a step.
inline std::int64_t max_key_blocks(const TypeTiles& tiles, std::int64_t max_keys) {
  return 2 * tiles.max_group_runs + tiles.max_group_columns / max_keys;
}

// Up to kGroup queries of a task.
struct QueryGroup {
  std::int64_t first = 0;    // counted from the example's first query
  std::int64_t row = 0;      // of the first query
  std::int64_t queries = 0;  // at most kGroup
};

// Logits are kept in base 2 (multiplied by log2 e): a softmax weight is then a power of two, without reduction by ln 2.
inline constexpr float kLog2E = 1.44269504f;
inline constexpr float kLn2 = 0.69314718f;

// Values that all groups of a task share (one example, one head). Small and read in every loop, so it is stored by
// value in the task's scratch.
struct HeadContext {
  const char* op = "";         // for messages
  std::int64_t index = 0;      // of the head
  std::int64_t head_size = 0;  // D
  std::int64_t stride = 0;     // of copied rows
  float scale = 1.0f;          // of the scores
  float logit_unit = kLog2E;   // a logit in base 2 of a type without C is its score times this

  HeadColumns columns() const { return {index, head_size}; }

  const Bf16Tiles* bf16 = nullptr;  // null: fp32
  std::int64_t bf16_stride = 0;     // of rows of components

  bool dropout = false;
  std::uint64_t dropout_key = 0;
  std::uint32_t dropout_head = 0;
  std::uint32_t dropout_threshold = 0;
  float kept_scale = 1.0f;  // 1/(1-rate)

  explicit HeadContext(const AttentionInputs& in)
      : op(in.tiles->op->name), head_size(in.head_size), stride(row_stride(in.head_size)), scale(score_scale(in)) {
    if (in.compute != ComputeType::bf16) return;
    bf16 = &bf16_tiles();
    bf16_stride = round_up(stride, kTilePairs);
  }

  // Lets scores be logits: for operators that carry no C, where nothing else depends on scores.
  void use_base_2() {
    scale *= kLog2E;
    logit_unit = 1.0f;
  }

  // Sets the values of a task; the constructor sets only those of the call.
  void set_task(const AttentionInputs& in, std::int64_t example, std::int64_t head) {
    index = head;
    dropout = in.dropout.rate > 0.0f;
    if (!dropout) return;
    const auto ordinal = static_cast<std::uint64_t>(in.dropout.sample_ordinals[example]);
    dropout_key = etc::dropout_key(in.dropout.seed, ordinal, in.dropout.layer, in.tiles->op->dropout_site);
    dropout_head = static_cast<std::uint32_t>(head);
    dropout_threshold = etc::dropout_threshold(in.dropout.rate);
    // Dropout preserves the expectation of every weight.
    kept_scale = 1.0f / (1.0f - in.dropout.rate);
  }
};

// The scores of one head.
inline TypeScores of_head(TypeScores scores, const TypeTiles& tiles, std::int64_t head) {
  if (scores.half != nullptr) scores.half += tiles.first_column(head) * kGroup;
  if (scores.running != nullptr) scores.running += tiles.first_column(head) * kGroup;
  return scores;
}

// A head's columns are contiguous; they contain the groups of all examples one after another.
inline TypeScoreGradients of_head(TypeScoreGradients scores, const TypeTiles& tiles, std::int64_t head) {
  if (scores.running != nullptr) scores.running += tiles.first_column(head) * kGroup;
  if (scores.gradient != nullptr) scores.gradient += tiles.first_column(head) * kGroup;
  return scores;
}

}  // namespace etc::sparse
