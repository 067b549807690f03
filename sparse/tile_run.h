// The units in which visible pairs are listed (visible_tiles.h says how), apart from the lists themselves.
//
// C++17: device code reads this header.
#pragma once

#include <cstdint>

namespace etc::sparse {

inline constexpr int kGroup = 16;      // queries of a group: one AVX-512 vector, two of AVX2, one tensor-core tile
inline constexpr int kRunStep = 8;     // runs are whole steps; keys a step has beyond the last one are masked
inline constexpr int kKeySplit = 512;  // runs of g2g and g2l never cross a multiple of this: the unit of splitting keys
// Labels of columns from here on stand for a label per query (visible_tiles.h, distance_labels.h).
inline constexpr std::uint32_t kFirstMixed = 65536;
inline constexpr std::int64_t kMostLabels = kFirstMixed;  // rows a relative table may have

struct TileRun {
  std::int64_t column = 0;     // of the first key, within the type
  std::int32_t first_key = 0;  // counted from the example's first key
  std::int32_t keys = 0;       // a multiple of kRunStep; may reach past the example's last key (masked there)
};

}  // namespace etc::sparse
