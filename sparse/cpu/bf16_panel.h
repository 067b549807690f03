// Memory of a task's bf16 operands (bf16_tiles.h describes their layout).
#pragma once

#include <cstdint>

#include "etc_core/base/arena.h"
#include "etc_core/base/integers.h"
#include "sparse/cpu/bf16_tiles.h"

namespace etc::sparse {

// Working memory of one task, aligned to cache lines, which is also the size of the largest vectors.
using Arena = etc::Arena<64>;

// Padding rows after the last key: rounding and products may read them, and products may write them in gradients. Runs
// extend up to one step beyond the last key and are rounded in whole tiles.
inline constexpr std::int64_t kBf16RowsBeyond = kRunStep + kTilePairs;

// Keys and values of a panel; null when the task computes in fp32. Layouts that a pass does not need are null, too:
// forward needs keys by rows and values by columns, backward both by rows and keys also by columns.
struct Bf16Panel {
  std::uint16_t *k_rows = nullptr, *v_rows = nullptr;  // [keys + kBf16RowsBeyond, row_stride]
  // kTilePairs keys after the other, so that a step's products read consecutive cache lines. A row is one component.
  std::uint16_t *k_columns = nullptr, *v_columns = nullptr;  // [steps, components, kTilePairs]
  std::int64_t row_stride = 0, components = 0;
  // Column `row` of keys or values in columns; further columns are adjacent up to the next multiple of kTilePairs.
  std::uint16_t* column(std::uint16_t* columns, std::int64_t row) const {
    return columns + row / kTilePairs * kTilePairs * components + row % kTilePairs;
  }

  // Backward: gradients of scores, and probabilities after dropout, of two groups; rows of tiles with touched = 0 are
  // undefined.
  std::uint16_t *gradient_rows = nullptr, *probability_rows = nullptr;  // [keys + kBf16RowsBeyond, kTilePairs]
  std::uint8_t* touched = nullptr;                                      // [tiles]: whether one of the groups sees it
  std::int64_t tiles = 0;                                               // of kTileRows16 rows

  // stride: of fp32 rows (D rounded up to a group).
  static Bf16Panel take(Arena& arena, std::int64_t keys, std::int64_t stride, bool backward) {
    Bf16Panel panel;
    panel.row_stride = round_up(stride, kTilePairs);
    panel.components = stride;
    // Key blocks begin at any multiple of kRunStep and are rounded up to a step.
    const std::int64_t rows = (keys + kBf16RowsBeyond) * panel.row_stride;
    const std::int64_t columns = round_up(keys + kBf16RowsBeyond, kTilePairs) * stride;
    panel.k_rows = arena.take<std::uint16_t>(rows);
    if (backward) panel.v_rows = arena.take<std::uint16_t>(rows);
    (backward ? panel.k_columns : panel.v_columns) = arena.take<std::uint16_t>(columns);
    if (!backward) return panel;
    panel.tiles = (keys + kBf16RowsBeyond) / kTileRows16;
    panel.gradient_rows = arena.take<std::uint16_t>(panel.tiles * kTileRows16 * kTilePairs);
    panel.probability_rows = arena.take<std::uint16_t>(panel.tiles * kTileRows16 * kTilePairs);
    panel.touched = arena.take<std::uint8_t>(panel.tiles);
    return panel;
  }
};

// Keys of one step of a group. The tile unit powers down after about 900 cycles without a product and takes about 700
// to power up (measured on an Intel Xeon); the vector work of a step of 32 keys takes less than 900 cycles.
inline constexpr std::int64_t kBf16Keys = 32;
static_assert(kBf16Keys == kTilePairs);  // a step reads columns that are adjacent
// Columns of a step's logits, including one column before and one tile after them, which products and weights write.
inline constexpr std::int64_t kBf16Columns = 1 + kBf16Keys + kTileRows16;

// A group's operands, and buffers for transposition.
struct Bf16Scratch {
  std::uint16_t* rows = nullptr;     // [kGroup, row_stride]
  std::uint16_t* q_pairs = nullptr;  // [row_stride/2, kGroup, 2]
  // Weights of two steps, or in backward gradients of scores: vector code fills one while products read the other.
  std::uint16_t* w_pairs[2] = {};  // [kBf16Keys/2, kGroup, 2] each
  float* out_columns = nullptr;    // [stride, kGroup]: out, or dq
  float* pairs = nullptr;          // [kGroup, stride]: pairs of value or key rows
  // Backward only.
  std::uint16_t* dout_pairs = nullptr;    // as q_pairs
  std::uint16_t* q_of_queries = nullptr;  // [kTileRows16, stride, 2]: pairs of queries of two groups
  std::uint16_t* dout_of_queries = nullptr;
  std::int64_t groups = 0;  // of these two that are done

  // Sizes of the largest step; keys and components in whole tiles.
  static Bf16Scratch take(Arena& arena, std::int64_t stride, bool backward) {
    const std::int64_t row_stride = round_up(stride, kTilePairs);
    Bf16Scratch scratch;
    scratch.rows = arena.take<std::uint16_t>(row_stride * kGroup);
    scratch.q_pairs = arena.take<std::uint16_t>(row_stride * kGroup);
    for (std::uint16_t*& pairs : scratch.w_pairs) pairs = arena.take<std::uint16_t>(kBf16Keys * kGroup);
    scratch.out_columns = arena.take<float>(stride * kGroup);
    scratch.pairs = arena.take<float>(kGroup * stride);
    if (!backward) return scratch;
    scratch.dout_pairs = arena.take<std::uint16_t>(row_stride * kGroup);
    scratch.q_of_queries = arena.take<std::uint16_t>(kTileRows16 * stride * 2);
    scratch.dout_of_queries = arena.take<std::uint16_t>(kTileRows16 * stride * 2);
    return scratch;
  }
};

}  // namespace etc::sparse
