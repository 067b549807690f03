// The height of tiles. A tile lower than 64 rows is used only if the library gives a row the same bits in tiles of any
// height. This is tested with random numbers, once per shape and process: it holds for the library's AVX-512 products,
// but its AVX2 products choose another order of summation.
#pragma once

#include <cstdint>

namespace etc::ops::cpu {

inline constexpr std::int64_t kTileRows = 64;  // rows of a whole tile

// Rows of the tile for `rows` <= kTileRows rows times W [k, n]: kTileRows, or fewer where the library gives a row the
// same bits in a lower tile. A product's last rows then cost less: 4 global tokens cost as much as 16 rows, not 64.
std::int64_t tile_height(std::int64_t rows, std::int64_t n, std::int64_t k);

}  // namespace etc::ops::cpu
