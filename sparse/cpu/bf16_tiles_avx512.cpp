// The products with the dot-product instruction of AVX512-BF16: 16 queries (or components) per vector, with a pair of
// the other operand's numbers broadcast to all lanes. All products use the same loop, rows times pairs. In each lane
// the odd product is added first, then the even one, by fused multiply-adds that flush subnormals (Intel's manual,
// VDPBF16PS; AMD's Zen 4 gives the same bits).
#if defined(__x86_64__)

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "sparse/cpu/bf16_round.h"
#include "sparse/cpu/bf16_tiles.h"

namespace etc::sparse {

namespace {

void nothing() {}

// Sums are kept in memory; up to 16 rows of them are loaded once per step.
void keep_sums(std::int64_t, const float*) {}
void keep_written_sums(std::int64_t, float*) {}

// Rows summed at a time: 16 sums hide the latency of the dot product where two are issued per cycle (6 cycles, Zen 5),
// 8 where one is (Zen 4). Results have room for rows up to a multiple of 8.
constexpr std::int64_t kRows = 16, kFewRows = 8;

// One pair of numbers in all lanes.
inline __m512bh broadcast_pair(const std::uint16_t* pair) {
  int both;
  std::memcpy(&both, pair, sizeof(both));
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(both));
}

// Row strides of the three operands.
struct RowStrides {
  std::int64_t a, b = 2 * kGroup, c = kGroup;
};

// c[r][i] (+)= sum_p a[r][2p] b[p][i][0] + a[r][2p + 1] b[p][i][1]
//   a, c: kCount rows; b: `pairs` rows of kGroup pairs
// Explicitly unrolled, because otherwise GCC 12 does not keep the sums in registers. Explicitly inlined, because with
// the callers' constant strides the rate rises from 130 to 210 GFLOP/s for few pairs (Zen 4). There is one pointer per
// four rows, so that the addresses of the other rows can be encoded in the instructions.
template <std::int64_t kCount, bool kAdd>
[[gnu::always_inline]] inline void multiply_rows(const std::uint16_t* a, const std::uint16_t* b, std::int64_t pairs,
                                                 float* c, RowStrides strides) {
  constexpr std::int64_t kSteps = 4;
  __m512 sum[kCount];
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kCount; ++r) sum[r] = kAdd ? _mm512_loadu_ps(c + r * strides.c) : _mm512_setzero_ps();
  const std::uint16_t* row[kCount / kSteps];
#pragma GCC unroll 4
  for (std::int64_t r = 0; r < kCount / kSteps; ++r) row[r] = a + kSteps * r * strides.a;
  for (std::int64_t p = 0; p < pairs; ++p) {
    const auto lanes = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + p * strides.b));
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < kCount; ++r) {
      sum[r] = _mm512_dpbf16_ps(sum[r], lanes, broadcast_pair(row[r / kSteps] + r % kSteps * strides.a + 2 * p));
    }
  }
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kCount; ++r) _mm512_storeu_ps(c + r * strides.c, sum[r]);
}

// The same for `rows` rows, rounded up to a multiple of kFewRows.
template <bool kAdd>
[[gnu::always_inline]] inline void multiply(const std::uint16_t* a, const std::uint16_t* b, std::int64_t pairs,
                                            float* c, RowStrides strides, std::int64_t rows) {
  std::int64_t r = 0;
  for (; r + kRows <= rows; r += kRows) {
    multiply_rows<kRows, kAdd>(a + r * strides.a, b, pairs, c + r * strides.c, strides);
  }
  for (; r < rows; r += kFewRows)
    multiply_rows<kFewRows, kAdd>(a + r * strides.a, b, pairs, c + r * strides.c, strides);
}

void dot_products(const std::uint16_t* q_pairs, const std::uint16_t* k, std::int64_t stride, std::int64_t keys,
                  float* s) {
  multiply<false>(k, q_pairs, stride / 2, s, {stride}, keys);
}

void weighted_sum(const std::uint16_t* w_pairs, const std::uint16_t* v, std::int64_t keys, std::int64_t components,
                  float* o) {
  const std::int64_t pairs = (keys + 1) / 2;  // an odd key's partner has weight 0
  multiply<true>(v, w_pairs, pairs, o, {kTilePairs}, components);
}

void outer_products(const std::uint16_t* w, const std::uint16_t* x_pairs, std::int64_t stride,
                    const std::uint8_t* touched, std::int64_t tiles, float* g) {
  for (std::int64_t n = 0; n < tiles; ++n) {
    if (touched[n] == 0) continue;
    for (std::int64_t c = 0; c < stride; c += kGroup) {
      multiply<true>(w + n * kTileRows16 * kTilePairs, x_pairs + 2 * c, kTilePairs / 2,
                     g + n * kTileRows16 * stride + c, {kTilePairs, 2 * stride, stride}, kTileRows16);
    }
  }
}

}  // namespace

const Bf16Tiles& avx512_bf16_tiles() {
  // Sums of dot_products are stored at once: nothing is left to end_dots.
  static constexpr Bf16Tiles tiles{2,
                                   true,
                                   false,
                                   nothing,
                                   nothing,
                                   round_row_avx512,
                                   round_pairs_avx512,
                                   dot_products,
                                   dot_products,
                                   keep_written_sums,
                                   keep_sums,
                                   keep_written_sums,
                                   weighted_sum,
                                   outer_products};
  return tiles;
}

}  // namespace etc::sparse

#endif  // __x86_64__
