// Transposition of 16 x 16 numbers of 32 bits. Highway's per-target include guard.
#if defined(ETC_BASE_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ETC_BASE_TRANSPOSE_INL_H_
#undef ETC_BASE_TRANSPOSE_INL_H_
#else
#define ETC_BASE_TRANSPOSE_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace etc::HWY_NAMESPACE {
inline constexpr std::int64_t kTransposed = 16;

// to[c][i] = rows[i][c] for 16 rows and columns.   rows [16, stride], to [16, to_stride]
#if HWY_TARGET <= HWY_AVX3
HWY_INLINE void transpose_block(const float* rows, std::int64_t stride, float* to, std::int64_t to_stride) {
  // Loads do half of the work: a vector takes the same four columns of rows i, i+4, i+8 and i+12. Two rounds of
  // interleaving, first single floats, then pairs of them, then transpose its four 4x4 blocks.
  for (std::int64_t c = 0; c < kTransposed; c += 4) {
    const auto quarter = [&](std::int64_t i) HWY_ATTR {
      const auto part = [&](std::int64_t row) HWY_ATTR { return _mm_loadu_ps(rows + row * stride + c); };
      __m512 x = _mm512_castps128_ps512(part(i));
      x = _mm512_mask_broadcast_f32x4(x, 0x00F0, part(i + 4));
      x = _mm512_mask_broadcast_f32x4(x, 0x0F00, part(i + 8));
      return _mm512_mask_broadcast_f32x4(x, 0xF000, part(i + 12));
    };
    const __m512 r0 = quarter(0), r1 = quarter(1), r2 = quarter(2), r3 = quarter(3);
    const __m512d a = _mm512_castps_pd(_mm512_unpacklo_ps(r0, r1)), b = _mm512_castps_pd(_mm512_unpacklo_ps(r2, r3));
    const __m512d x = _mm512_castps_pd(_mm512_unpackhi_ps(r0, r1)), y = _mm512_castps_pd(_mm512_unpackhi_ps(r2, r3));
    float* const place = to + c * to_stride;  // [4, kTransposed]
    _mm512_storeu_pd(place, _mm512_unpacklo_pd(a, b));
    _mm512_storeu_pd(place + to_stride, _mm512_unpackhi_pd(a, b));
    _mm512_storeu_pd(place + 2 * to_stride, _mm512_unpacklo_pd(x, y));
    _mm512_storeu_pd(place + 3 * to_stride, _mm512_unpackhi_pd(x, y));
  }
}
#else
HWY_INLINE void transpose_block(const float* rows, std::int64_t stride, float* to, std::int64_t to_stride) {
  namespace hn = hwy::HWY_NAMESPACE;
  // 4x4 blocks: two rounds of interleaving, first single floats, then pairs of them (as doubles).
  const hn::FixedTag<float, 4> d4;
  const hn::FixedTag<double, 2> pairs;
  for (std::int64_t c = 0; c < kTransposed; c += 4) {
    for (std::int64_t i = 0; i < kTransposed; i += 4) {
      const float* from = rows + i * stride + c;  // [4, 4] of the rows
      const auto r0 = hn::LoadU(d4, from), r1 = hn::LoadU(d4, from + stride);
      const auto r2 = hn::LoadU(d4, from + 2 * stride), r3 = hn::LoadU(d4, from + 3 * stride);
      const auto a = hn::BitCast(pairs, hn::InterleaveLower(d4, r0, r1));  // r0[0] r1[0] r0[1] r1[1]
      const auto b = hn::BitCast(pairs, hn::InterleaveLower(d4, r2, r3));
      const auto x = hn::BitCast(pairs, hn::InterleaveUpper(d4, r0, r1));  // r0[2] r1[2] r0[3] r1[3]
      const auto y = hn::BitCast(pairs, hn::InterleaveUpper(d4, r2, r3));
      float* place = to + c * to_stride + i;  // [4, 4] of the transpose
      hn::StoreU(hn::BitCast(d4, hn::InterleaveLower(pairs, a, b)), d4, place);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveUpper(pairs, a, b)), d4, place + to_stride);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveLower(pairs, x, y)), d4, place + 2 * to_stride);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveUpper(pairs, x, y)), d4, place + 3 * to_stride);
    }
  }
}
#endif

}  // namespace etc::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
