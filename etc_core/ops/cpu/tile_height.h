// How many rows a tile has that holds the last rows of a product.
#pragma once

#include <cstdint>

#include "etc_core/base/compute_type.h"

namespace etc::ops::cpu {

inline constexpr std::int64_t kTileRows = 64;  // of a whole tile

// Rows of the tile for `rows` <= kTileRows rows times W [k, n]: kTileRows, or fewer where the library gives a row the
// same bits in a lower tile. A product's last rows then cost what they need: 4 global tokens those of 16, not of 64.
// Whether it does is tried, once per shape and instruction set, with random numbers: its AVX-512 products do, those of
// AVX2 choose another order of summation.
std::int64_t tile_height(std::int64_t rows, std::int64_t n, std::int64_t k);

// The same for products of bf16 or int8 (reduced_product.h), where packed weights must lie alike, too.
std::int64_t reduced_tile_height(ComputeType compute, std::int64_t rows, std::int64_t n, std::int64_t k);

}  // namespace etc::ops::cpu
