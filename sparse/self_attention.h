// The attention type and operator of a dense encoder: tokens attend to their own sequence, all of it or a window.
#pragma once

#include <cstdint>

#include "sparse/attention_types.h"
#include "sparse/visible_tiles.h"

namespace etc::sparse {

inline constexpr AttentionType kSelf{0, "self"};

// The second key set has no keys.
inline constexpr AttentionOperator kSelfAttention{
    "self_attention",
    "self_attention bf16",
    "self_attention_backward",
    {kSelf, AttentionType{1, "none"}},
    DropoutSite::long_attention,
    Partition::queries,
};

// The tokens of a ragged batch.
struct SequenceLabels {
  std::int64_t examples = 0;              // B
  const std::int64_t* offsets = nullptr;  // [B+1]
  std::int64_t radius = kFull;            // tokens at most this far apart see each other
  std::int64_t relative_labels = 0;       // R; 0: labels only mask
  // [T, 2*radius+1] by distance, kMasked: not seen; null: everything within the radius is seen, no relative term.
  // With kFull the radius is the length of the longest example minus 1.
  const std::uint8_t* labels = nullptr;
  const AttentionOperator* op = &kSelfAttention;  // or another model's with Partition::queries

  static constexpr std::int64_t kFull = -1;  // every token sees every token of its example
};

// The radius of a batch's tiles.
std::int64_t self_radius(const SequenceLabels& labels);

// The tiles of the operator. Throws Error as build_long_tiles does.
AttentionTiles build_self_tiles(const SequenceLabels& labels);

}  // namespace etc::sparse
