// The products by the dot product of AVX-512's BF16 part: 16 queries (or components) in a vector, a pair of another row's
// numbers broadcast to all of them. All are the same one, of rows times pairs. In each lane the odd product is added
// first, then the even one, by fused multiply-adds that flush subnormals (Intel's manual, VDPBF16PS; AMD's Zen 4 gives
// the same bits).
#if defined(__x86_64__)

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "sparse/cpu/bf16_round.h"
#include "sparse/cpu/bf16_tiles.h"

namespace etc::sparse {

namespace {

void nothing() {}

// Sums lie in memory: eight rows of them are loaded once per step.
void keep_sums(std::int64_t, const float*) {}
void keep_written_sums(std::int64_t, float*) {}

// Rows summed at a time. Eight sums hide the latency of the dot product (6 cycles on Zen 4), and their addresses stay
// in registers whatever the stride.
constexpr std::int64_t kRows = 8;

// One pair of numbers in all lanes.
inline __m512bh broadcast_pair(const std::uint16_t* pair) {
  int both;
  std::memcpy(&both, pair, sizeof(both));
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(both));
}

// Numbers from row to row of the three operands.
struct RowStrides {
  std::int64_t a, b = 2 * kGroup, c = kGroup;
};

// c[r][i] (+)= sum_p a[r][2p] b[p][i][0] + a[r][2p + 1] b[p][i][1]     a, c: kRows rows; b: `pairs` rows of kGroup pairs
// Unrolled by request: only then GCC 12 keeps the sums in registers. Inlined by request: with the strides its callers know
// the rate rises from 130 to 210 GFLOP/s where there are few pairs (Zen 4).
template <bool kAdd>
[[gnu::always_inline]] inline void eight_rows(const std::uint16_t* a, const std::uint16_t* b, std::int64_t pairs,
                                              float* c, RowStrides strides) {
  __m512 sum[kRows];
#pragma GCC unroll 8
  for (std::int64_t r = 0; r < kRows; ++r) sum[r] = kAdd ? _mm512_loadu_ps(c + r * strides.c) : _mm512_setzero_ps();
  for (std::int64_t p = 0; p < pairs; ++p) {
    const auto lanes = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + p * strides.b));
#pragma GCC unroll 8
    for (std::int64_t r = 0; r < kRows; ++r) {
      sum[r] = _mm512_dpbf16_ps(sum[r], lanes, broadcast_pair(a + r * strides.a + 2 * p));
    }
  }
#pragma GCC unroll 8
  for (std::int64_t r = 0; r < kRows; ++r) _mm512_storeu_ps(c + r * strides.c, sum[r]);
}

void dot_products(const std::uint16_t* q_pairs, const std::uint16_t* k, std::int64_t stride, std::int64_t keys,
                  float* s) {
  for (std::int64_t j = 0; j < keys; j += kRows) {
    eight_rows<false>(k + j * stride, q_pairs, stride / 2, s + j * kGroup, {stride});
  }
}

void weighted_sum(const std::uint16_t* w_pairs, const std::uint16_t* v, std::int64_t v_stride, std::int64_t keys,
                  std::int64_t components, float* o) {
  const std::int64_t pairs = (keys + 1) / 2;  // an odd key's partner has weight 0
  for (std::int64_t d = 0; d < components; d += kRows) {
    eight_rows<true>(v + d * v_stride, w_pairs, pairs, o + d * kGroup, {v_stride});
  }
}

void outer_products(const std::uint16_t* w, const std::uint16_t* x_pairs, std::int64_t stride, std::int64_t keys,
                    float* g) {
  for (std::int64_t j = 0; j < keys; j += kRows) {
    for (std::int64_t c = 0; c < stride; c += kGroup) {
      eight_rows<true>(w + j * kGroup, x_pairs + 2 * c, kGroup / 2, g + j * stride + c, {kGroup, 2 * stride, stride});
    }
  }
}

}  // namespace

const Bf16Tiles& avx512_bf16_tiles() {
  static constexpr Bf16Tiles tiles{
      2,         nothing,           nothing,      round_row_avx512, round_pairs_avx512, dot_products,
      keep_sums, keep_written_sums, weighted_sum, outer_products};
  return tiles;
}

}  // namespace etc::sparse

#endif  // __x86_64__
