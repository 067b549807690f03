// Rounding of the operands of Bf16Tiles with the AVX-512 instruction: round_row and round_pairs of bf16_tiles.h.
#pragma once

#include <cstdint>

namespace etc::sparse {

void round_row_avx512(const float* row, std::int64_t size, std::int64_t stride, std::uint16_t* to);
void round_pairs_avx512(const float* first, const float* second, std::int64_t size, std::int64_t stride,
                        std::uint16_t* to);

}  // namespace etc::sparse
