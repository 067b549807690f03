// Tiles of patterns given as ranges of keys: each query sees a list of ranges, so the cost of building depends
// on the visible pairs and not on the sequence lengths. Used by the builders of this folder.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sparse/visible_tiles.h"

namespace etc::sparse {

// Keys [begin, end), counted from the example's first.
struct KeyInterval {
  std::int64_t begin = 0, end = 0;
};

// A query, counted from the example's first, as one head sees the keys.
struct PatternQuery {
  std::int64_t head = 0, example = 0, query = 0;
};

// One type of an operator that is divided by keys (Partition::keys), without labels.
struct RangePattern {
  AttentionType type;
  std::vector<std::int64_t> query_offsets, key_offsets;  // [B+1]
  std::int64_t heads = 1;                                // heads with separate patterns; 1: all heads share one
  // Appends the ranges that a query sees, in ascending order, not overlapping and not adjacent, and within the
  // example. Called once per query and head, on any thread.
  std::function<void(const PatternQuery&, std::vector<KeyInterval>&)> append_seen;
};

// Runs begin at multiples of kRunStep and do not cross key splits; split_offsets is filled in. Cost: O(visible pairs +
// queries), in parallel over groups; 2 bytes per column, charged to `labels`.
TypeTiles build_key_ranges(const RangePattern& pattern);

}  // namespace etc::sparse
