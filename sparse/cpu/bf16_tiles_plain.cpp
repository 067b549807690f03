// AMX's arithmetic in scalar code (Intel's manual, TDPBF16PS): per step of 32 numbers the even and the odd products are
// summed separately, by fused multiply-adds that flush subnormals, then both are added to the sum.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "etc_core/base/bf16.h"
#include "etc_core/base/cpu_features.h"
#include "sparse/cpu/bf16_tiles.h"

namespace etc::sparse {

const Bf16Tiles& amx_bf16_tiles();     // bf16_tiles_amx.cpp
const Bf16Tiles& avx512_bf16_tiles();  // bf16_tiles_avx512.cpp

namespace {

// kCount adjacent sums += a·b over one step: a [2·pairs] adjacent numbers, b pairs of numbers, one pair per sum, rows
// `row` apart. The order of additions is that of the hardware, since another order would give other bits. The inner
// loop runs over the sums, so that compilers vectorise it.
template <std::int64_t kCount>
void step(const std::uint16_t* a, const std::uint16_t* b, std::int64_t row, std::int64_t pairs, float* sums) {
  float even[kCount] = {}, odd[kCount] = {};
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    const float first = float_from_bf16(a[2 * pair]), second = float_from_bf16(a[2 * pair + 1]);
    const std::uint16_t* const both = b + pair * row;
    for (std::int64_t i = 0; i < kCount; ++i) {
      even[i] = std::fma(first, float_from_bf16(both[2 * i]), even[i]);
      odd[i] = std::fma(second, float_from_bf16(both[2 * i + 1]), odd[i]);
    }
  }
  for (std::int64_t i = 0; i < kCount; ++i) sums[i] += even[i] + odd[i];
}

void nothing() {}

// Sums are kept in memory.
void keep_sums(std::int64_t, const float*) {}
void keep_written_sums(std::int64_t, float*) {}

// Equivalent of round_row_avx512: rounds to nearest even like the instruction.
void round_row(const float* row, std::int64_t size, std::int64_t stride, std::uint16_t* to) {
  for (std::int64_t c = 0; c < stride; ++c) to[c] = c < size ? bf16_from_float(row[c]) : std::uint16_t{0};
}

void round_pairs(const float* first, const float* second, std::int64_t size, std::int64_t stride, std::uint16_t* to) {
  for (std::int64_t c = 0; c < stride; ++c) {
    to[2 * c] = first != nullptr && c < size ? bf16_from_float(first[c]) : std::uint16_t{0};
    to[2 * c + 1] = second != nullptr && c < size ? bf16_from_float(second[c]) : std::uint16_t{0};
  }
}

// The reference with which the tests compare AMX.
void dot_products(const std::uint16_t* q_pairs, const std::uint16_t* k, std::int64_t stride, std::int64_t keys,
                  float* s) {
  for (std::int64_t j = 0; j < keys; ++j) {
    float* const sums = s + j * kGroup;
    std::fill_n(sums, kGroup, 0.0f);
    for (std::int64_t d = 0; d < stride; d += kTilePairs) {
      step<kGroup>(k + j * stride + d, q_pairs + d * kGroup, 2 * kGroup, kTilePairs / 2, sums);
    }
  }
}

void weighted_sum(const std::uint16_t* w_pairs, const std::uint16_t* v, std::int64_t, std::int64_t components,
                  float* o) {
  // A whole tile of keys; the padding has weight 0.
  for (std::int64_t d = 0; d < components; ++d) {
    step<kGroup>(v + d * kTilePairs, w_pairs, 2 * kGroup, kTilePairs / 2, o + d * kGroup);
  }
}

void outer_products(const std::uint16_t* w, const std::uint16_t* x_pairs, std::int64_t stride,
                    const std::uint8_t* touched, std::int64_t tiles, float* g) {
  constexpr std::int64_t kColumns = 16;
  for (std::int64_t j = 0; j < tiles * kTileRows16; ++j) {
    if (touched[j / kTileRows16] == 0) continue;
    for (std::int64_t c = 0; c < stride; c += kColumns) {
      step<kColumns>(w + j * kTilePairs, x_pairs + 2 * c, 2 * stride, kTilePairs / 2, g + j * stride + c);
    }
  }
}

}  // namespace

const Bf16Tiles& plain_bf16_tiles() {
  static constexpr Bf16Tiles tiles{
      kTilePairs,   false,         false,        nothing,           nothing,   round_row,
      round_pairs,  dot_products,  dot_products, keep_written_sums, keep_sums, keep_written_sums,
      weighted_sum, outer_products};
  return tiles;
}

// The rounding of AMX's operands uses AVX-512's bf16 instructions; every processor with AMX has them, but a virtual
// machine may hide them.
const Bf16Tiles& bf16_tiles() {
#if defined(__x86_64__)
  if (cpu_has_avx512(ComputeType::bf16)) {
    return cpu_has_amx(ComputeType::bf16) ? amx_bf16_tiles() : avx512_bf16_tiles();
  }
#endif
  return plain_bf16_tiles();
}

}  // namespace etc::sparse
