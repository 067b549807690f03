// Causal self-attention: a token sees itself and earlier tokens, all of them or a window, including the memory of
// earlier segments that precedes the segment.
//
//   keys of an example     |·· memory, M ··|······ segment, n ······|
//   query i of the segment     [--- reach before its own key ---] i        its own key is number M + i
#pragma once

#include <cstdint>

#include "sparse/self_attention.h"

namespace etc::sparse {

// A ragged batch of segments.
struct CausalSequence {
  std::int64_t examples = 0;                  // B
  const std::int64_t* offsets = nullptr;      // [B+1]: of the segments' tokens, which are the queries
  const std::int64_t* key_offsets = nullptr;  // [B+1]: of memory and segment, in this order; null: no memory
  // Number of keys that a query sees before its own key. With the model's memory length all queries see the same number
  // of keys (`same_length` of Transformer-XL); a smaller reach is a window.
  std::int64_t reach = kAll;
  std::int64_t relative_labels = 0;  // R; 0: labels only mask
  // [queries, causal_reach+1] by distance, the last column is the query's own key; kMasked: not seen; null: no relative
  // term.
  const std::uint8_t* labels = nullptr;
  const AttentionOperator* op = &kSelfAttention;  // or another model's with Partition::queries

  static constexpr std::int64_t kAll = -1;  // everything before it
};

// The reach of a batch's tiles; for kAll it is that of the longest example.
std::int64_t causal_reach(const CausalSequence& sequence);

// The tiles of the operator: query i of an example with M keys of memory sees keys max(0, M + i - reach) … M + i.
// Throws Error as build_self_tiles does, and when an example has fewer keys than queries.
// Source: "Transformer-XL" (Dai et al. 2019), section 3.2.
AttentionTiles build_causal_tiles(const CausalSequence& sequence);

}  // namespace etc::sparse
