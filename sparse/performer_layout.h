// Memory layout of linear attention: chunks of an example's rows, and the state that forward saves for backward.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "etc_core/base/integers.h"
#include "sparse/performer.h"

namespace etc::sparse {

inline constexpr std::int64_t kChunkRows = 512;  // rows of a task; their sums use one slot
inline constexpr std::int64_t kLineFloats = 16;  // a cache line, and a multiple of every instruction set's vector

// What |x|^2 is multiplied by (s), and what the projection is multiplied by (its root).
inline float square_scale(const PerformerInputs& in) {
  return in.scale > 0 ? in.scale : static_cast<float>(1.0 / std::sqrt(static_cast<double>(in.head_size)));
}
inline float projection_scale(const PerformerInputs& in) {
  return in.scale > 0 ? std::sqrt(in.scale) : static_cast<float>(std::pow(static_cast<double>(in.head_size), -0.25));
}

// Sizes of a call, padded to whole cache lines; the padding is 0.
struct PerformerSizes {
  std::int64_t heads, head_size, features, stride, padded;

  explicit PerformerSizes(const PerformerInputs& in)
      : heads(in.heads),
        head_size(in.head_size),
        features(in.features),
        stride(round_up(in.head_size, kLineFloats)),
        padded(round_up(in.features, kLineFloats)) {}

  // Floats of sum_j f(k_j) v_jT [padded, stride] followed by sum_j f(k_j) [padded], or of their gradients.
  std::int64_t sum_floats() const { return padded * (stride + 1); }
};

// One chunk of one head of an example.
struct Chunk {
  std::int64_t example = 0, head = 0, index = 0;
  std::int64_t first_row = 0, rows = 0;  // first_row: within the batch
};

// The chunks of a batch's queries or keys, numbered by example, head and position. Their sums are added in this order.
class ChunkList {
 public:
  ChunkList(const std::int64_t* offsets, std::int64_t examples, std::int64_t heads) : heads_(heads) {
    for (std::int64_t b = 0; b < examples; ++b) {
      rows_.push_back({offsets[b], offsets[b + 1]});
      firsts_.push_back(firsts_.back() + heads * ceil_div(offsets[b + 1] - offsets[b], kChunkRows));
    }
  }

  std::int64_t examples() const { return static_cast<std::int64_t>(rows_.size()); }
  std::int64_t tasks() const { return firsts_.back(); }
  std::int64_t chunks(std::int64_t example) const { return ceil_div(rows_of(example), kChunkRows); }
  std::int64_t first_row(std::int64_t example) const { return rows_[static_cast<std::size_t>(example)].begin; }
  std::int64_t rows_of(std::int64_t example) const {
    const Range& own = rows_[static_cast<std::size_t>(example)];
    return own.end - own.begin;
  }
  std::int64_t slot(std::int64_t example, std::int64_t head, std::int64_t index) const {
    return firsts_[static_cast<std::size_t>(example)] + head * chunks(example) + index;
  }
  // The chunk of task number `slot`.
  Chunk chunk(std::int64_t slot) const {
    const auto after = std::upper_bound(firsts_.begin(), firsts_.end(), slot);
    const std::int64_t b = after - firsts_.begin() - 1, number = slot - firsts_[static_cast<std::size_t>(b)];
    Chunk own;
    own.example = b;
    own.head = number / chunks(b);
    own.index = number % chunks(b);
    own.first_row = first_row(b) + own.index * kChunkRows;
    own.rows = std::min(kChunkRows, first_row(b) + rows_of(b) - own.first_row);
    return own;
  }

 private:
  struct Range {
    std::int64_t begin, end;
  };
  std::int64_t heads_;
  std::vector<Range> rows_;              // of each example
  std::vector<std::int64_t> firsts_{0};  // [B+1]: each example's first slot
};

// The state: per example and head the maximum over its keys, followed by the sums over all keys (causal: over the keys
// before each chunk).
struct PerformerState {
  PerformerSizes sizes;
  ChunkList keys;
  bool causal;

  explicit PerformerState(const PerformerInputs& in)
      : sizes(in), keys(in.key_offsets, in.examples, in.heads), causal(in.causal) {}

  std::int64_t maximum(std::int64_t example, std::int64_t head) const { return example * sizes.heads + head; }
  std::int64_t sum(std::int64_t example, std::int64_t head, std::int64_t chunk) const {
    const std::int64_t number = causal ? keys.slot(example, head, chunk) : maximum(example, head);
    return round_up(keys.examples() * sizes.heads, kLineFloats) + number * sizes.sum_floats();
  }
  std::int64_t floats() const {
    const std::int64_t sums = causal ? keys.tasks() : keys.examples() * sizes.heads;
    return round_up(keys.examples() * sizes.heads, kLineFloats) + sums * sizes.sum_floats();
  }
};

}  // namespace etc::sparse
