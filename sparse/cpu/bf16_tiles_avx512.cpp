// The two products by the dot product of AVX-512's BF16 part: 16 queries in a vector, a pair of another row's numbers
// broadcast to all of them. Both products are the same one, of rows times pairs. In each lane the odd product is added
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

// Rows summed at a time. Eight sums hide the latency of the dot product (6 cycles on Zen 4), and their addresses stay
// in registers whatever the stride.
constexpr std::int64_t kRows = 8;

// One pair of numbers in all lanes.
inline __m512bh broadcast_pair(const std::uint16_t* pair) {
  int both;
  std::memcpy(&both, pair, sizeof(both));
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(both));
}

// c[r][i] (+)= sum_p a[r][2p] b[p][i][0] + a[r][2p + 1] b[p][i][1]     a [kRows, stride], b [pairs, kGroup, 2], c [kRows, kGroup]
// Unrolled by request: only then GCC 12 keeps the sums in registers.
template <bool kAdd>
inline void eight_rows(const std::uint16_t* a, std::int64_t stride, std::int64_t pairs, const std::uint16_t* b,
                       float* c) {
  __m512 sum[kRows];
#pragma GCC unroll 8
  for (std::int64_t r = 0; r < kRows; ++r) sum[r] = kAdd ? _mm512_loadu_ps(c + r * kGroup) : _mm512_setzero_ps();
  for (std::int64_t p = 0; p < pairs; ++p) {
    const auto lanes = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + p * 2 * kGroup));
#pragma GCC unroll 8
    for (std::int64_t r = 0; r < kRows; ++r) {
      sum[r] = _mm512_dpbf16_ps(sum[r], lanes, broadcast_pair(a + r * stride + 2 * p));
    }
  }
#pragma GCC unroll 8
  for (std::int64_t r = 0; r < kRows; ++r) _mm512_storeu_ps(c + r * kGroup, sum[r]);
}

void dot_products(const std::uint16_t* q_pairs, const std::uint16_t* k, std::int64_t stride, std::int64_t keys,
                  float* s) {
  for (std::int64_t j = 0; j < keys; j += kRows) {
    eight_rows<false>(k + j * stride, stride, stride / 2, q_pairs, s + j * kGroup);
  }
}

void weighted_sum(const std::uint16_t* w_pairs, const std::uint16_t* v, std::int64_t v_stride, std::int64_t keys,
                  std::int64_t components, float* o) {
  const std::int64_t pairs = (keys + 1) / 2;  // an odd key's partner has weight 0
  for (std::int64_t d = 0; d < components; d += kRows) {
    eight_rows<true>(v + d * v_stride, v_stride, pairs, w_pairs, o + d * kGroup);
  }
}

}  // namespace

const Bf16Tiles& avx512_bf16_tiles() {
  static constexpr Bf16Tiles tiles{nothing, nothing, round_row_avx512, round_pairs_avx512, dot_products, weighted_sum};
  return tiles;
}

}  // namespace etc::sparse

#endif  // __x86_64__
