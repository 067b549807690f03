// Labels computed from a pair's distance (key position minus query position). Nothing is stored per pair.
//
//   label_ij = rows[clip(distance_ij, first, first + size - 1) - first]
//
// A column of a group of kGroup queries has the distances d, d-1, … d-15, where d is the distance to the group's first
// query. If all of them have the same label, as in far columns of clipped distances, the column's code is that label.
// Otherwise the code is the start of the kGroup consecutive labels in a list of all distances in descending order:
//
//   distances        … 3  2  1  0 -1 -2 -3 …          lanes   their table rows; the first and last are repeated
//   column, d = 2         [2  1  0 -1 -2 … -13]               kGroup consecutive entries from there on
#pragma once

#include <cstdint>
#include <vector>

#include "etc_core/base/buffer.h"

namespace etc::sparse {

// The table row of every distance; distances outside the map use its first or last row.
struct DistanceMap {
  std::int64_t first = 0;           // the smallest distance in the map
  std::vector<std::uint32_t> rows;  // [distances], by distance from `first` on
};

// A map as kernels read it (label_by_distance makes it).
struct DistanceLabels {
  std::int64_t first = 0;
  Buffer<std::uint32_t> codes;       // [distances + kGroup - 1], by d - first: a label, or kFirstMixed + place in lanes
  Buffer<std::int32_t> lanes;        // [distances + 2(kGroup - 1)]
  std::vector<std::int64_t> shifts;  // [B]; empty where nothing is labelled by distance

  bool used() const { return codes.size() > 0; }
  std::int64_t shift(std::int64_t example) const {
    return shifts.empty() ? 0 : shifts[static_cast<std::size_t>(example)];
  }
  // The place in codes of the column with distance d to the group's first query.
  std::int64_t place(std::int64_t d) const {
    const std::int64_t at = d - first, last = codes.size() - 1;
    return at < 0 ? 0 : (at > last ? last : at);
  }
};

}  // namespace etc::sparse
