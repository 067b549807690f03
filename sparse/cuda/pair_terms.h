// Steps for a pair of query and key between the products: running score, mask, dropout (terms: score_terms.h).
// Forward and backward share this code, so that recomputed scores equal the forward's to the last bit.
#pragma once

#include <cstdint>

#include "etc_core/base/cuda/simt.h"
#include "etc_core/base/random.h"
#include "sparse/cuda/attention_params.h"
#include "sparse/cuda/products.h"
#include "sparse/score_element.h"

namespace etc::sparse::cuda {

inline constexpr float kLog2E = 1.44269504f;
inline constexpr float kLn2 = 0.69314718f;
inline constexpr float kHidden = -3.0e38f;  // below every logit; finite, because differences of infinities are NaN

// The steps of one group that start before key first_key + kTileKeys, from `cursor` on: the group's steps in one tile.
// Runs have gaps between them, so a step's row within the tile and its column in the lists are separate numbers.
ETC_DEVICE Chunk chunk_of(const TypeView& type, const Cursor& cursor, std::int64_t group, int first_key) {
  Chunk chunk;
  std::int64_t at = cursor.run;
  const std::int64_t runs_end = simt::load(type.run_offsets, group + 1);
  int key = cursor.key;
  TileRun run;
  if (at < runs_end) run = simt::load(type.runs, at);
  // Unrolled, so that row and column stay in registers; the first step past the tile ends the loop.
  ETC_UNROLL
  for (int s = 0; s < kTileSteps; ++s) {
    if (at >= runs_end || run.first_key + key >= first_key + kTileKeys) break;
    chunk.row[s] = run.first_key + key - first_key;
    chunk.column[s] = run.column + key;
    chunk.count = s + 1;
    key += kRunStep;
    if (key < run.keys) continue;
    key = 0;
    if (++at < runs_end) run = simt::load(type.runs, at);
  }
  return chunk;
}

// Query and key of accumulator e, within group and step (products.h draws it).
ETC_DEVICE int query_of(int e) {
  return simt::lane_index() / 4 + e / 2 * 8;
}
ETC_DEVICE int key_of(int e) {
  return simt::lane_index() % 4 * 2 + e % 2;
}

// Bit e: whether the query of accumulator e sees its key.
ETC_DEVICE unsigned visible_pairs(const TypeView& type, std::int64_t column) {
  unsigned pairs = 0;
  ETC_UNROLL
  for (int j = 0; j < 2; ++j) {
    // The 16 bits of a column are read by the 8 lanes that share its key.
    const unsigned queries = simt::load(type.visible, column + key_of(j));
    pairs |= (queries >> query_of(0) & 1u) << j | (queries >> query_of(2) & 1u) << (2 + j);
  }
  return pairs;
}

// Bit e: whether dropout keeps the pair. `key`: of the step's first key in dropout's numbering.
ETC_DEVICE unsigned kept_pairs(std::uint64_t stream, std::uint32_t threshold, std::int64_t head, int first_query,
                               int first_key) {
  unsigned kept = 0;
  ETC_UNROLL
  for (int half = 0; half < 2; ++half) {
    // Numbered within the example, so that other examples in the batch do not matter.
    const auto query = static_cast<std::uint32_t>(first_query + query_of(2 * half));
    const auto key = static_cast<std::uint32_t>(first_key + key_of(0));
    // One call gives the bits of four adjacent keys; a lane has two of them, which may be in two Philox blocks.
    Philox4 block = dropout_block(stream, static_cast<std::uint32_t>(head), query, key / 4);
    ETC_UNROLL
    for (int j = 0; j < 2; ++j) {
      const std::uint32_t own = key + static_cast<std::uint32_t>(j);
      // The second key begins the next block.
      if (j == 1 && own % 4 == 0) block = dropout_block(stream, static_cast<std::uint32_t>(head), query, own / 4);
      // Selected, not indexed: indexing would move the block to local memory.
      const std::uint32_t low = own % 2 == 0 ? block[0] : block[1], high = own % 2 == 0 ? block[2] : block[3];
      const std::uint32_t bits = own % 4 < 2 ? low : high;
      kept |= (bits >= threshold ? 1u : 0u) << (2 * half + j);
    }
  }
  return kept;
}

// Index of a pair in C and dC of one head.
ETC_DEVICE std::int64_t score_place(const TypeView& type, std::int64_t head, std::int64_t column, int e) {
  return (head * type.columns + column + key_of(e)) * kGroup + query_of(e);
}

// Sums that may wrap around at masked pairs.
ETC_DEVICE std::int32_t wrapping_add(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}
ETC_DEVICE std::int32_t wrapping_subtract(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b));
}

ETC_DEVICE bool in_range(float score) {
  return score <= kScoreLimit && score >= -kScoreLimit;  // false for nan
}

// C is fixed point with step 2^-20 (score_element.h).
ETC_DEVICE float running_value(std::int32_t element) {
  return static_cast<float>(element) * kScoreStep;
}

}  // namespace etc::sparse::cuda
