// The largest numbers of runs of rows, by counting. Shares no code with the library.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/reference/dense.h"

namespace etc::test {

// [S, cols, k]: the rows, counted from their segment's first, of the k largest numbers of each column of each segment
// of z [T, cols]; -1 where the segment has fewer. A row's rank is the number of rows that precede it: non-finite numbers
// first, then larger before smaller, then lower rows before higher.
inline std::vector<std::int32_t> reference_top_k_rows(const std::vector<std::int64_t>& offsets, std::int64_t cols,
                                                      std::int64_t k, const Reals& z) {
  std::vector<std::int32_t> top;
  for (std::size_t segment = 0; segment + 1 < offsets.size(); ++segment) {
    const std::int64_t first = offsets[segment], end = offsets[segment + 1];
    for (std::int64_t col = 0; col < cols; ++col) {
      const auto value = [&](std::int64_t row) { return z[static_cast<std::size_t>(row * cols + col)]; };
      std::vector<std::int32_t> list(static_cast<std::size_t>(k), -1);
      for (std::int64_t row = first; row < end; ++row) {
        const double mine = value(row);
        std::int64_t place = 0;
        for (std::int64_t other = first; other < end; ++other) {
          const double theirs = value(other);
          const bool equal = std::isfinite(mine) ? theirs == mine : !std::isfinite(theirs);
          const bool larger = std::isfinite(mine) && (!std::isfinite(theirs) || theirs > mine);
          place += larger || (equal && other < row);
        }
        if (place < k) list[static_cast<std::size_t>(place)] = static_cast<std::int32_t>(row - first);
      }
      top.insert(top.end(), list.begin(), list.end());
    }
  }
  return top;
}

}  // namespace etc::test
