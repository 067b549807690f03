// Transposition of 4 x 4 and 16 x 16 numbers of 32 bits. Highway's per-target include guard.
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

// to[c][i] = rows[i][c] for four rows and columns, by two rounds of interleaving: first single floats, then pairs of them
// (as doubles).   rows [4, stride], to [4, to_stride]
HWY_INLINE void transpose_square(const float* rows, std::int64_t stride, float* to, std::int64_t to_stride) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> pairs;
  const auto halves = [&](auto x, auto y, std::int64_t row) {  // two rows: the lower and the upper halves of x and y
    const auto a = hn::BitCast(pairs, x), b = hn::BitCast(pairs, y);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, a, b)), d, to + row * to_stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, a, b)), d, to + (row + 1) * to_stride);
  };
  const auto row = [&](std::int64_t i) { return hn::LoadU(d, rows + i * stride); };
  const auto r0 = row(0), r1 = row(1), r2 = row(2), r3 = row(3);
  halves(hn::InterleaveLower(d, r0, r1), hn::InterleaveLower(d, r2, r3), 0);
  halves(hn::InterleaveUpper(d, r0, r1), hn::InterleaveUpper(d, r2, r3), 2);
}

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
  for (std::int64_t c = 0; c < kTransposed; c += 4) {
    for (std::int64_t i = 0; i < kTransposed; i += 4) {
      transpose_square(rows + i * stride + c, stride, to + c * to_stride + i, to_stride);
    }
  }
}
#endif

}  // namespace etc::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
