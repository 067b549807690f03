// Positions of tokens whose inputs name none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace etc {

// 0, 1, 2, … from the first token of each example.   offsets [B+1] → [offsets[B]]
template <typename Number>
std::vector<Number> counted_positions(const std::vector<std::int64_t>& offsets) {
  std::vector<Number> positions;
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
    for (std::int64_t i = 0; i < offsets[b + 1] - offsets[b]; ++i) positions.push_back(static_cast<Number>(i));
  }
  return positions;
}

}  // namespace etc
