// Where a task's bf16 operands lie (bf16_tiles.h says how).
#pragma once

#include <algorithm>
#include <cstdint>

#include "etc_core/base/arena.h"
#include "etc_core/base/integers.h"
#include "sparse/cpu/bf16_tiles.h"

namespace etc::sparse {

// Working memory of one task: whole lines of the cache, and of the largest vectors.
using Arena = etc::Arena<64>;

// Keys and values of a panel; null when the task computes in fp32.
struct Bf16Panel {
  std::uint16_t* k = nullptr;  // [keys + a tile, k_stride]
  std::uint16_t* v = nullptr;  // [components, v_stride]: a row holds one component of all keys
  std::int64_t k_stride = 0, v_stride = 0;

  // stride: of fp32 rows (D rounded up to a group).
  static Bf16Panel take(Arena& arena, std::int64_t keys, std::int64_t stride) {
    Bf16Panel panel;
    panel.k_stride = round_up(stride, kTilePairs);
    // Parts begin at any multiple of kRunStep and are rounded up to a step. An odd number of lines, so that the rows of
    // a tile do not all fall into the same sets of the cache.
    panel.v_stride = (round_up(keys + 2 * kTilePairs, kTilePairs) / kTilePairs | 1) * kTilePairs;
    // Room for a tile of rows beyond the last key, which dot_products reads and multiplies, whatever lies there.
    panel.k = arena.take<std::uint16_t>((keys + 2 * kTileRows16) * panel.k_stride);
    panel.v = arena.take<std::uint16_t>(stride * panel.v_stride);
    return panel;
  }
};

// Of one step of a group. The tile unit falls asleep when it has had nothing to multiply for some 900 cycles, and takes
// 700 to wake up (measured on an Intel Xeon); the vector work of a step of 32 keys is shorter than that.
inline constexpr std::int64_t kBf16Keys = 32;

// A group's operands, and room for turning things.
struct Bf16Scratch {
  std::uint16_t* q_rows = nullptr;   // [kGroup, k_stride]
  std::uint16_t* q_pairs = nullptr;  // [k_stride/2, kGroup, 2]
  std::uint16_t* w_pairs = nullptr;  // [kBf16Keys/2, kGroup, 2]
  float* out_columns = nullptr;      // [stride, kGroup]
  float* pairs = nullptr;            // [kGroup, stride]: of values

  // Sizes of the largest step; keys and components in whole tiles.
  static Bf16Scratch take(Arena& arena, std::int64_t stride) {
    Bf16Scratch scratch;
    scratch.q_rows = arena.take<std::uint16_t>(round_up(stride, kTilePairs) * kGroup);
    scratch.q_pairs = arena.take<std::uint16_t>(round_up(stride, kTilePairs) * kGroup);
    scratch.w_pairs = arena.take<std::uint16_t>(kBf16Keys * kGroup);
    scratch.out_columns = arena.take<float>(stride * kGroup);
    scratch.pairs = arena.take<float>(kGroup * stride);
    return scratch;
  }
};

}  // namespace etc::sparse
