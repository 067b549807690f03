// Tiles of labels that have sizes but no values, for counting memory (etc_core/base/counting.h).
//
// A long input's labels alone take more memory than many machines have: 11 GB at 300,000 long and 18,750 global tokens.
// To count what a call with them takes, nothing need read them. Where they are regular, the tiles of a shorter input of
// the same kind tell what a group of queries contributes.
#pragma once

#include "etc_core/base/not_copied.h"
#include "sparse/visible_tiles.h"

namespace etc::sparse {

// While it lives, and while counting, label buffers are only reserved, and build_long_tiles and build_global_tiles look
// at no label: every group of queries gets as many columns, runs and mixed labels as the middle group of the sample has
// or, where that one sees every key of its example, columns for all keys of its own. Of the calling thread, not nested.
class TileSample : NotCopied {
 public:
  TileSample(const AttentionTiles& long_tiles, const AttentionTiles& global_tiles);  // of one example
  ~TileSample();
};

// What a group of queries contributes to its type's tiles.
struct GroupSizes {
  std::int64_t columns = 0, runs = 0, mixed_columns = 0, visible_pairs = 0;
  bool whole = false;  // it sees every key of its example
};

// Of the sample there is; none: labels have values.
const GroupSizes* sampled_group(AttentionType type);

}  // namespace etc::sparse
