// Tiles of labels that have sizes but no values, for counting memory (etc_core/base/counting.h).
//
// The labels alone of a long input take more memory than many machines have: 11 GB at 300,000 long and 18,750 global
// tokens. The forecast of a call's memory does not need their values. Where labels are regular, the tiles of a shorter
// input of the same kind show how much each group of queries contributes.
#pragma once

#include "etc_core/base/not_copied.h"
#include "sparse/visible_tiles.h"

namespace etc::sparse {

// During its lifetime, and while counting, label buffers are only reserved, and build_long_tiles and build_global_tiles
// read no labels: every group of queries gets as many columns, runs and mixed labels as the sample's middle group, or
// columns for all keys of its example if the middle group sees all keys of the sample. Applies to the calling thread;
// must not be nested.
class TileSample : NotCopied {
 public:
  TileSample(const AttentionTiles& long_tiles, const AttentionTiles& global_tiles);  // of one example
  ~TileSample();
};

// Sizes of one group's part of its type's tiles.
struct GroupSizes {
  std::int64_t columns = 0, runs = 0, mixed_columns = 0, visible_pairs = 0;
  bool whole = false;  // it sees every key of its example
};

// The sizes from the current TileSample; null without one, when labels have values.
const GroupSizes* sampled_group(AttentionType type);

}  // namespace etc::sparse
