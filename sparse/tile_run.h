// The units in which visible pairs are listed; visible_tiles.h has the lists.
//
// C++17: device code reads this header.
#pragma once

#include <cstdint>

namespace etc::sparse {

inline constexpr int kGroup = 16;      // queries of a group: one AVX-512 vector, two of AVX2, one tensor-core tile
inline constexpr int kRunStep = 8;     // runs are whole steps; keys of a step beyond the example's last key are masked
inline constexpr int kKeySplit = 512;  // with Partition::keys: size of a key split; runs never cross a multiple of it
// A column label from this value on means one label per query (visible_tiles.h, distance_labels.h).
inline constexpr std::uint32_t kFirstMixed = 65536;
inline constexpr std::int64_t kMostLabels = kFirstMixed;  // rows a relative table may have

struct TileRun {
  std::int64_t column = 0;     // of the first key, within the type
  std::int32_t first_key = 0;  // counted from the example's first key
  std::int32_t keys = 0;       // a multiple of kRunStep; may reach past the example's last key (masked there)
};

}  // namespace etc::sparse
