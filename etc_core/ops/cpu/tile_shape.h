// Sizes of tiles that may not follow from the sizes of a product alone, since the library gives all of them the same
// bits. Whether it does is tried, once per shape and process, with random numbers: its AVX-512 products do,
// those of AVX2 choose another order of summation.
#pragma once

#include <cstdint>

namespace etc::ops::cpu {

inline constexpr std::int64_t kTileRows = 64;  // of a whole tile

// Rows of the tile for `rows` <= kTileRows rows times W [k, n]: kTileRows, or fewer where the library gives a row the
// same bits in a lower tile. A product's last rows then cost what they need: 4 global tokens those of 16, not of 64.
std::int64_t tile_height(std::int64_t rows, std::int64_t n, std::int64_t k);

// A tile of dw [p, q].
struct GradientTile {
  std::int64_t high = 0, wide = 0;
};

struct WeightGradient;

// Of sums over a whole block of tokens: as large as leaves enough of them for the threads, because oneDNN packs both
// operands anew for each (768 x 3072, GFLOP/s of one core: 62 with tiles of 192 x 192, 81 with 384 x 384, 96 with
// 768 x 768); where bits would follow the tile, that of a part of a block. The library also looks at the distance of
// rows (multiples of 1,024 floats get another kernel), so the trial is made with those of this very gradient.
GradientTile gradient_tile(const WeightGradient& gradient);

// Of sums over a part of a block, of whatever length: follows from p and q alone.
GradientTile gradient_tile_of_part(std::int64_t p, std::int64_t q);

}  // namespace etc::ops::cpu
