// Exact products of bytes on processors without int8 dot products. Numbers are widened to 16 bits, one instruction
// multiplies and adds pairs that are adjacent in k, and the sums are kept in 32 bits.
//
// Sums in 16 bits (as in oneDNN on AVX2) need fewer instructions but saturate: the sum of two products of an unsigned
// and a signed byte does not fit. Here every sum is exact, so the results have the same bits as with AMX and VNNI.
#pragma once

#include <cstddef>
#include <cstdint>

namespace etc::ops::cpu {

inline constexpr std::int64_t kPairRows = 4;   // of a block of sums
inline constexpr std::int64_t kPairCols = 16;  // of a strip of weights

// y [m, n] = x·W, y row-major without gaps; m a multiple of kPairRows; k at most 66,000, so that sums do not overflow.
struct PairProduct {
  std::int64_t m = 0, n = 0, k = 0;
  const std::uint8_t* x = nullptr;  // [m, k], rows row_bytes apart
  std::int64_t row_bytes = 0;
  const std::int8_t* weights = nullptr;  // packed by pack_pairs
  std::byte* scratch = nullptr;          // pair_scratch_bytes(m), aligned to 64 bytes
  std::int32_t* y = nullptr;
};
void multiply_pairs(const PairProduct& product);
std::int64_t pair_scratch_bytes(std::int64_t m);

// w [k, n], without gaps -> strips of 16 columns, each [k/2 rounded up, 16, 2]; padded with zeros.
void pack_pairs(const std::int8_t* w, std::int64_t k, std::int64_t n, std::int8_t* weights);
std::int64_t pair_weight_bytes(std::int64_t k, std::int64_t n);

}  // namespace etc::ops::cpu
