// BigBird's blocks: a query block sees the first and the last key block, its neighbours and some random blocks.
//
//   key block      0  1  2  3  4  5  6  7  8          0 and 8: global, seen by all; their queries see everything
//   query block 5  #  .  r  .  #  #  #  .  #          4-6: window;  2: random
//
// Random blocks are drawn like in the published program: each candidate range is permuted, and the first blocks that
// the row does not see anyway are taken. Inputs of more than 2r+5 blocks have one range, the first 2r+5 blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sparse/self_attention.h"

namespace etc::sparse {

// Block lists are sorted runs of keys anywhere in the sequence: divided by keys.
inline constexpr AttentionOperator kBigBirdAttention{
    "bigbird_attention",          "bigbird_attention bf16",
    "bigbird_attention_backward", {kSelf, AttentionType{1, "none"}},
    DropoutSite::long_attention,  Partition::keys,
};

// A model's settings.
struct BigBirdPattern {
  std::int64_t block_size = 64;    // tokens
  std::int64_t random_blocks = 3;  // r, of every query block but the first and the last
  bool per_layer = false;          // every layer draws its own blocks
  std::int64_t heads = 1;          // N if every head draws its own blocks, 1 if all heads share one pattern
  std::uint64_t seed = 0;
};

// Query block `row` of an example of `blocks` blocks, as one head of one layer sees it.
struct BigBirdRow {
  std::int64_t blocks = 0, row = 0, head = 0, layer = 0;
};

// The random key blocks of a middle row, ascending: a pure function of the pattern's seed and the row. If a range has
// fewer candidates than wanted, all are taken. Requires blocks >= 5 + r.
std::vector<std::int64_t> random_key_blocks(const BigBirdPattern& pattern, const BigBirdRow& row);

// The tokens of a ragged batch in one layer.
struct BigBirdBatch {
  std::int64_t examples = 0;              // B
  const std::int64_t* offsets = nullptr;  // [B+1]
  std::int64_t layer = 0;                 // used only with per_layer
  // Returns a row's random blocks, for example those of a checkpoint, instead of drawing them; empty: drawn.
  std::function<std::vector<std::int64_t>(const BigBirdRow&)> given;
};

// The tiles of kBigBirdAttention. Every query has one softmax over the union of its blocks. The last block of an
// example may be short. Examples of fewer than 5 + r blocks use full attention; the log reports this once.
// Throws Error as build_self_tiles does, and for block_size, heads < 1 or random_blocks < 0.
// Source: "Big Bird" (Zaheer et al. 2020), section 2; its published program for the choice of blocks.
AttentionTiles build_bigbird_tiles(const BigBirdPattern& pattern, const BigBirdBatch& batch);

}  // namespace etc::sparse
