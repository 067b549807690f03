// Weights of the softmax in bf16: powers of two, rounded in pairs of keys. Highway's per-target include guard.
#if defined(SPARSE_CPU_BF16_WEIGHTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_BF16_WEIGHTS_INL_H_
#undef SPARSE_CPU_BF16_WEIGHTS_INL_H_
#else
#define SPARSE_CPU_BF16_WEIGHTS_INL_H_
#endif

#include <hwy/highway.h>

#include "etc_core/base/nearest_int-inl.h"
#include "sparse/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The bits of 2^x, x < 127. The relative error is at most 1.1e-4, a twentieth of the possible bf16 rounding error. The
// result is exact for integer x, so that a row with one key gets the weight 1; it is 0 for -inf, and subnormal or 0
// below 2^-126, which the threads and the tiles treat as 0. x = n + r with 0 <= r < 1; 2^r is the cubic through both
// end points with the least relative error; n is added to the exponent.
// Lanes outside of `visible` are 0, whatever x is.
HWY_INLINE UintVec bf16_power_bits(FloatMask visible, FloatVec x) {
  const FloatTag d;
  const UintTag du;
  const auto cubic = [&](FloatVec r) HWY_ATTR {
    FloatVec p = hn::Set(d, 7.8268006e-2f);
    p = hn::MulAdd(p, r, hn::Set(d, 0.22630764f));
    p = hn::MulAdd(p, r, hn::Set(d, 0.69542435f));
    return hn::MulAdd(p, r, hn::Set(d, 1.0f));
  };
#if HWY_TARGET <= HWY_AVX3
  // One instruction each for r (rounding down, no exceptions) and for p·2^n.
  const FloatVec p = cubic(FloatVec{_mm512_reduce_ps(x.raw, 0x09)});
  return hn::BitCast(du, FloatVec{_mm512_maskz_scalef_ps(visible.raw, p.raw, x.raw)});
#else
  const FloatVec clamped = hn::Max(x, hn::Set(d, -127.0f));
  const FloatVec n = hn::Floor(clamped);
  const FloatVec p = cubic(hn::Sub(clamped, n));
  const UintVec bits =
      hn::Add(hn::BitCast(du, p), hn::ShiftLeft<23>(hn::BitCast(du, etc::HWY_NAMESPACE::nearest_int(n))));
  return hn::IfThenElseZero(hn::RebindMask(du, visible), bits);
#endif
}

// The weights of two consecutive keys, added to the sum and rounded as a pair; the first key's is the lower half. Weights
// round half away from zero, which is as accurate as half to even.
HWY_INLINE UintVec join_weights(UintVec first, UintVec second, FloatVec& sum) {
  const FloatTag d;
  const UintVec half = hn::Set(UintTag(), 0x8000u);
  sum = hn::Add(sum, hn::Add(hn::BitCast(d, first), hn::BitCast(d, second)));
  const UintVec lower = hn::Add(first, half), upper = hn::Add(second, half);
#if HWY_TARGET <= HWY_AVX3
  // Bytes 2 and 3 of every number.
  const __m512i of_lower = _mm512_set4_epi32(0x0F0E0F0E, 0x0B0A0B0A, 0x07060706, 0x03020302);
  return UintVec{_mm512_mask_shuffle_epi8(upper.raw, 0x3333333333333333u, lower.raw, of_lower)};
#else
  return hn::OrAnd(hn::ShiftRight<16>(lower), upper, hn::Set(UintTag(), 0xFFFF0000u));
#endif
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
