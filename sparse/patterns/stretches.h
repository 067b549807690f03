// Tiles of patterns that are stretches of keys: what a query sees is a list of ranges, so that building costs as much
// as there are visible pairs, however long the sequences. For the builders of this folder.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sparse/visible_tiles.h"

namespace etc::sparse {

// Keys [begin, end), counted from the example's first.
struct KeyStretch {
  std::int64_t begin = 0, end = 0;
};

// A query, counted from the example's first, as one head sees the keys.
struct PatternQuery {
  std::int64_t head = 0, example = 0, query = 0;
};

// One type of an operator that is divided by keys (Partition::keys), without labels.
struct StretchPattern {
  AttentionType type;
  std::vector<std::int64_t> query_offsets, key_offsets;  // [B+1]
  std::int64_t heads = 1;                                // with patterns of their own; 1: all heads share one
  // Appends the stretches a query sees, in order, apart from one another and within the example. Called once per query
  // and head, on any thread.
  std::function<void(const PatternQuery&, std::vector<KeyStretch>&)> append_seen;
};

// Runs begin at multiples of kRunStep and end with splits of keys; split_offsets are filled. Cost: O(visible pairs +
// queries), in parallel over groups; 2 bytes per column, charged to `labels`.
TypeTiles build_stretches(const StretchPattern& pattern);

}  // namespace etc::sparse
