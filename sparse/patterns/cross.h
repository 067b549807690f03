// Cross-attention: every token of one sequence sees all tokens of another, as a decoder sees its encoder's states.
#pragma once

#include <cstdint>

#include "sparse/visible_tiles.h"

namespace etc::sparse {

inline constexpr AttentionType kCross{0, "cross"};

// Key set 0 is the other sequence; the second one has no keys.
inline constexpr AttentionOperator kCrossAttention{
    "cross_attention",
    "cross_attention bf16",
    "cross_attention_backward",
    {kCross, AttentionType{1, "none"}},
    DropoutSite::global_attention,  // numbers a query's keys in order
    Partition::keys,
};

// Two ragged sequences per example.
struct CrossSequences {
  std::int64_t examples = 0;                    // B
  const std::int64_t* query_offsets = nullptr;  // [B+1]
  const std::int64_t* key_offsets = nullptr;    // [B+1]
};

// The tiles of kCrossAttention. Throws Error as build_long_tiles does.
AttentionTiles build_cross_tiles(const CrossSequences& sequences);

}  // namespace etc::sparse
