// How a task walks the tiles of one example and head: scratch, contiguous copies of keys and values, parts of runs.
// Nothing here is vector code; the arithmetic is in group-inl.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "etc_core/base/error.h"
#include "etc_core/base/random.h"
#include "sparse/attention_types.h"
#include "sparse/visible_tiles.h"

namespace etc::sparse {

// Hands out 64-byte aligned stretches of one block. With a null block it only counts: the same function that lays out a
// task's scratch tells its size.
class Arena {
 public:
  explicit Arena(void* block) : block_(static_cast<std::byte*>(block)) {}

  template <typename T>
  T* take(std::int64_t count) {
    T* place = block_ == nullptr ? nullptr : reinterpret_cast<T*>(block_ + used_);
    used_ += (count * static_cast<std::int64_t>(sizeof(T)) + 63) / 64 * 64;
    return place;
  }
  std::int64_t used() const { return used_; }

 private:
  std::byte* block_;
  std::int64_t used_ = 0;
};

// Row stride of copies: D rounded up to a whole group of components, the rest zero.
inline std::int64_t row_stride(std::int64_t head_size) {
  return (head_size + kGroup - 1) / kGroup * kGroup;
}

// Copies of labels or keys are padded to this many rows beyond the last one, since runs are whole steps.
inline std::int64_t padded_rows(std::int64_t rows) {
  return (rows + kRunStep - 1) / kRunStep * kRunStep;
}

// to[row] = from[first_row + row] of one head, zero beyond D and beyond `rows`.   to [total_rows, stride]
inline void copy_rows(const Rows& from, std::int64_t head, std::int64_t head_size, std::int64_t first_row,
                      std::int64_t rows, std::int64_t total_rows, float* to) {
  const std::int64_t stride = row_stride(head_size);
  const float* source = from.data + first_row * from.stride + head * head_size;
  for (std::int64_t r = 0; r < rows; ++r, source += from.stride) {
    std::memcpy(to + r * stride, source, static_cast<std::size_t>(head_size) * sizeof(float));
    if (stride != head_size) std::fill(to + r * stride + head_size, to + (r + 1) * stride, 0.0f);
  }
  std::fill(to + rows * stride, to + total_rows * stride, 0.0f);
}

// Contiguous keys and values of one type, a stretch of one example and head; in backward their gradients.
struct KeyPanel {
  std::int64_t first_key = 0;  // counted within the example
  std::int64_t keys = 0;
  float* k = nullptr;  // [padded keys, stride]
  float* v = nullptr;
  float* dk = nullptr;
  float* dv = nullptr;
  std::uint32_t dropout_base = 0;  // dropout counts the type's key 0 as this one

  std::int64_t end() const { return first_key + keys; }

  // Room for `keys` keys; runs reach up to a step beyond the last one.
  static KeyPanel take(Arena& arena, std::int64_t keys, std::int64_t stride, bool backward) {
    const std::int64_t size = (padded_rows(keys) + kRunStep) * stride;
    KeyPanel panel;
    panel.k = arena.take<float>(size);
    panel.v = arena.take<float>(size);
    if (backward) {
      panel.dk = arena.take<float>(size);
      panel.dv = arena.take<float>(size);
    }
    return panel;
  }

  // Keys [begin, end) of the example whose key 0 is row `example_row`; gradients start at zero.
  void load(const Rows& k_rows, const Rows& v_rows, std::int64_t head, std::int64_t head_size, std::int64_t example_row,
            std::int64_t begin, std::int64_t end) {
    first_key = begin;
    keys = end - begin;
    const std::int64_t total = padded_rows(keys) + kRunStep;
    copy_rows(k_rows, head, head_size, example_row + begin, keys, total, k);
    copy_rows(v_rows, head, head_size, example_row + begin, keys, total, v);
    if (dk == nullptr) return;
    std::fill_n(dk, total * row_stride(head_size), 0.0f);
    std::fill_n(dv, total * row_stride(head_size), 0.0f);
  }
};

// A stretch of one run, at most `max_keys` keys: what the inner loops work on.
struct Part {
  const TypeTiles* tiles = nullptr;
  const KeyPanel* panel = nullptr;
  int type = 0;             // 0 or 1: which of the operator's two types
  std::int64_t column = 0;  // within the type
  std::int64_t row = 0;     // of the first key, within the panel
  std::int64_t keys = 0;    // a multiple of kRunStep
};

// Appends the parts of a group's runs that start within the panel; returns how many.
inline std::int64_t collect_parts(const TypeTiles& tiles, std::int64_t group, int type, const KeyPanel& panel,
                                  std::int64_t max_keys, Part* parts) {
  const TileRun* run = tiles.runs.data() + tiles.run_offsets[group];
  const TileRun* end = tiles.runs.data() + tiles.run_offsets[group + 1];
  run =
      std::lower_bound(run, end, panel.first_key, [](const TileRun& r, std::int64_t key) { return r.first_key < key; });
  std::int64_t count = 0;
  for (; run != end && run->first_key < panel.end(); ++run) {
    for (std::int64_t at = 0; at < run->keys; at += max_keys) {
      parts[count++] = {&tiles,
                        &panel,
                        type,
                        run->column + at,
                        run->first_key + at - panel.first_key,
                        std::min(max_keys, run->keys - at)};
    }
  }
  return count;
}

// An upper bound for what collect_parts appends.
inline std::int64_t max_parts(const TypeTiles& tiles, std::int64_t max_keys) {
  return tiles.max_group_runs + tiles.max_group_columns / max_keys;
}

// What stays the same over all groups of a task: one example, one head.
struct HeadContext {
  std::int64_t head_size = 0;  // D
  std::int64_t stride = 0;     // of copied rows
  float scale = 1.0f;          // 1/sqrt(D)

  std::int64_t labels = 0;            // R rounded up to whole steps; 0: no relative term
  float* relative_vectors = nullptr;  // [labels, stride]
  float* relative_biases = nullptr;   // [labels]

  bool dropout = false;
  std::uint64_t dropout_key = 0;
  std::uint32_t dropout_head = 0;
  std::uint32_t dropout_threshold = 0;
  float kept_scale = 1.0f;  // 1/(1-rate)

  static HeadContext take(Arena& arena, std::int64_t head_size, const RelativeTable& table) {
    HeadContext context;
    context.head_size = head_size;
    context.stride = row_stride(head_size);
    context.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_size)));
    context.labels = table.vectors == nullptr ? 0 : padded_rows(table.labels);
    context.relative_vectors = arena.take<float>(context.labels * context.stride);
    context.relative_biases = arena.take<float>(context.labels);
    return context;
  }

  void load(const RelativeTable& table, std::int64_t heads, std::int64_t head) {
    if (labels == 0) return;
    const Rows rows{table.vectors, heads * head_size, table.labels};
    copy_rows(rows, head, head_size, 0, table.labels, labels, relative_vectors);
    for (std::int64_t r = 0; r < labels; ++r) {
      const bool given = table.biases != nullptr && r < table.labels;
      relative_biases[r] = given ? table.biases[r * heads + head] : 0.0f;
    }
  }

  void set_dropout(const DropoutArgs& args, DropoutSite site, std::int64_t example, std::int64_t head) {
    dropout = args.rate > 0.0f;
    if (!dropout) return;
    const auto ordinal = static_cast<std::uint64_t>(args.sample_ordinals[example]);
    dropout_key = etc::dropout_key(args.seed, ordinal, args.layer, site);
    dropout_head = static_cast<std::uint32_t>(head);
    dropout_threshold = etc::dropout_threshold(args.rate);
    kept_scale = 1.0f / (1.0f - args.rate);
  }
};

// The scores of one head.
inline TypeScores of_head(TypeScores scores, const TypeTiles& tiles, std::int64_t head) {
  if (scores.running != nullptr) scores.running += head * tiles.columns * kGroup;
  return scores;
}

inline TypeScoreGradients of_head(TypeScoreGradients scores, const TypeTiles& tiles, std::int64_t head) {
  if (scores.running != nullptr) scores.running += head * tiles.columns * kGroup;
  if (scores.gradient != nullptr) scores.gradient += head * tiles.columns * kGroup;
  return scores;
}

[[noreturn]] inline void fail_out_of_range(const Part& part, const TypeScores& scores) {
  const bool is_long = part.tiles->type == AttentionType::l2l || part.tiles->type == AttentionType::l2g;
  fail(is_long ? "long_attention" : "global_attention",
       "scores.{}: layer {}: expected scores and running sums of at most {} in magnitude at every visible pair, got a "
       "larger one or one that is not a number (the model diverges; see its learning rate)",
       attention_type_name(part.tiles->type), scores.layer, kScoreLimit);
}

// drel[r, head] += one slot's sums, drel_bias likewise.   vectors [labels, stride], biases [labels]
inline void add_table_gradients(const float* vectors, const float* biases, std::int64_t stride, std::int64_t heads,
                                std::int64_t head, std::int64_t head_size, std::int64_t labels,
                                const RelativeTableGradients& to) {
  for (std::int64_t r = 0; r < labels; ++r) {
    float* place = to.vectors + (r * heads + head) * head_size;
    for (std::int64_t d = 0; d < head_size; ++d) place[d] += vectors[r * stride + d];
    if (to.biases != nullptr) to.biases[r * heads + head] += biases[r];
  }
}

}  // namespace etc::sparse
