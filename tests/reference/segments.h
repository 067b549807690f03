// Sums and copies of runs of rows in double. Shares no code with the library.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/reference/dense.h"

namespace etc::test {

// The segment of every row, from the offsets [S+1].
inline std::vector<std::int64_t> reference_segment_ids(const std::vector<std::int64_t>& offsets) {
  std::vector<std::int64_t> ids;
  for (std::int64_t row = 0; row < offsets.back(); ++row) {
    std::int64_t segment = 0;
    while (row >= offsets[static_cast<std::size_t>(segment + 1)]) ++segment;
    ids.push_back(segment);
  }
  return ids;
}

// sums [S, cols] + the rows [T, cols] of each segment. Linear in both.
inline Reals reference_sum_segments(const std::vector<std::int64_t>& offsets, std::int64_t cols, const Reals& rows,
                                    Reals sums) {
  const std::vector<std::int64_t> ids = reference_segment_ids(offsets);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    sums[static_cast<std::size_t>(ids[static_cast<std::size_t>(at / cols)] * cols + at % cols)] += rows[i];
  }
  return sums;
}

// rows [T, cols] + the value [cols] of each row's segment, of values [S, cols]. Linear in both.
inline Reals reference_spread_segments(const std::vector<std::int64_t>& offsets, std::int64_t cols, const Reals& values,
                                       Reals rows) {
  const std::vector<std::int64_t> ids = reference_segment_ids(offsets);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    rows[i] += values[static_cast<std::size_t>(ids[static_cast<std::size_t>(at / cols)] * cols + at % cols)];
  }
  return rows;
}

}  // namespace etc::test
