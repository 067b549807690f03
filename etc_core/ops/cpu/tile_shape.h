// The height of tiles, which may not follow from the sizes of a product alone, since the library gives all of them the
// same bits. Whether it does is tried, once per shape and process, with random numbers: its AVX-512 products do,
// those of AVX2 choose another order of summation.
#pragma once

#include <cstdint>

namespace etc::ops::cpu {

inline constexpr std::int64_t kTileRows = 64;  // of a whole tile

// Rows of the tile for `rows` <= kTileRows rows times W [k, n]: kTileRows, or fewer where the library gives a row the
// same bits in a lower tile. A product's last rows then cost what they need: 4 global tokens those of 16, not of 64.
std::int64_t tile_height(std::int64_t rows, std::int64_t n, std::int64_t k);

}  // namespace etc::ops::cpu
