// AMX's arithmetic, number by number (Intel's manual, TDPBF16PS): per step of 32 numbers the even and the odd products
// are summed apart, by fused multiply-adds that flush subnormals, then both are added to the sum.
#include <cmath>

#include "etc_core/base/bf16.h"
#include "etc_core/base/cpu_features.h"
#include "sparse/cpu/bf16_tiles.h"

namespace etc::sparse {

const Bf16Tiles& amx_bf16_tiles();     // bf16_tiles_amx.cpp
const Bf16Tiles& avx512_bf16_tiles();  // bf16_tiles_avx512.cpp

namespace {

// The right operand of a step: pairs `row` apart.
struct Pairs {
  const std::uint16_t* data;
  std::int64_t row = 2 * kGroup, count = kTilePairs / 2;
};

// sum + a·b over one step: a [2·count] neighbours.
// The order of the additions is the hardware's: another one would give other bits.
float step(float sum, const std::uint16_t* a, const Pairs& b) {
  float even = 0.0f, odd = 0.0f;
  for (std::int64_t pair = 0; pair < b.count; ++pair) {
    even = std::fma(float_from_bf16(a[2 * pair]), float_from_bf16(b.data[pair * b.row]), even);
    odd = std::fma(float_from_bf16(a[2 * pair + 1]), float_from_bf16(b.data[pair * b.row + 1]), odd);
  }
  return sum + (even + odd);
}

void nothing() {}

// Sums lie in memory.
void keep_sums(std::int64_t, const float*) {}
void keep_written_sums(std::int64_t, float*) {}

// Stands for round_row_avx512: nearest even, as the instruction rounds.
void round_row(const float* row, std::int64_t size, std::int64_t stride, std::uint16_t* to) {
  for (std::int64_t c = 0; c < stride; ++c) to[c] = c < size ? bf16_from_float(row[c]) : std::uint16_t{0};
}

void round_pairs(const float* first, const float* second, std::int64_t size, std::int64_t stride, std::uint16_t* to) {
  for (std::int64_t c = 0; c < stride; ++c) {
    to[2 * c] = first != nullptr && c < size ? bf16_from_float(first[c]) : std::uint16_t{0};
    to[2 * c + 1] = second != nullptr && c < size ? bf16_from_float(second[c]) : std::uint16_t{0};
  }
}

// One number after the other: this is the definition the tests hold AMX to, not something to run fast.
void dot_products(const std::uint16_t* q_pairs, const std::uint16_t* k, std::int64_t stride, std::int64_t keys,
                  float* s) {
  for (std::int64_t j = 0; j < keys; ++j) {
    for (std::int64_t i = 0; i < kGroup; ++i) {
      float sum = 0.0f;
      for (std::int64_t d = 0; d < stride; d += kTilePairs)
        sum = step(sum, k + j * stride + d, {q_pairs + d * kGroup + 2 * i});
      s[j * kGroup + i] = sum;
    }
  }
}

void weighted_sum(const std::uint16_t* w_pairs, const std::uint16_t* v, std::int64_t v_stride, std::int64_t keys,
                  std::int64_t components, float* o) {
  for (std::int64_t d = 0; d < components; ++d) {
    for (std::int64_t i = 0; i < kGroup; ++i) {
      float sum = o[d * kGroup + i];
      // Whole tiles of keys: the rest has weight 0.
      for (std::int64_t j = 0; j < keys; j += kTilePairs)
        sum = step(sum, v + d * v_stride + j, {w_pairs + j * kGroup + 2 * i});
      o[d * kGroup + i] = sum;
    }
  }
}

void outer_products(const std::uint16_t* w, const std::uint16_t* x_pairs, std::int64_t stride, std::int64_t keys,
                    float* g) {
  for (std::int64_t j = 0; j < keys; ++j) {
    for (std::int64_t c = 0; c < stride; ++c) {
      float* const place = g + j * stride + c;
      *place = step(*place, w + j * kGroup, {x_pairs + 2 * c, 2 * stride, kGroup / 2});
    }
  }
}

}  // namespace

const Bf16Tiles& plain_bf16_tiles() {
  static constexpr Bf16Tiles tiles{kTilePairs,   nothing,   nothing,           round_row,    round_pairs,
                                   dot_products, keep_sums, keep_written_sums, weighted_sum, outer_products};
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
