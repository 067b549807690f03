// 2^x in vectors. Highway's per-target include guard.
#if defined(ETC_BASE_POWER_OF_TWO_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ETC_BASE_POWER_OF_TWO_INL_H_
#undef ETC_BASE_POWER_OF_TWO_INL_H_
#else
#define ETC_BASE_POWER_OF_TWO_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace etc::HWY_NAMESPACE {

// 2^x for x <= 127, at most 1 ulp off; exactly 0 below -125, before the result would be subnormal (the threads flush
// those anyway), and for x = -inf. NaN gives 0.
// x = n + r with |r| <= 1/2; 2^r by a polynomial; n is added to the exponent bits.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V power_of_two(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<D> di;
  // The clamp keeps the exponent's addition below from wrapping; `tiny` then says which results are 0.
  const auto tiny = hn::Lt(x, hn::Set(d, -125.0f));
  const V clamped = hn::Max(x, hn::Set(d, -125.0f));
  // (2^r - 1) / r: minimax for the relative error of 2^r on [-1/2, 1/2] (2e-9).
  const auto polynomial = [&](V r) HWY_ATTR {
    V p = hn::Set(d, 1.5353358e-4f);
    p = hn::MulAdd(p, r, hn::Set(d, 1.3398876e-3f));
    p = hn::MulAdd(p, r, hn::Set(d, 9.618437e-3f));
    p = hn::MulAdd(p, r, hn::Set(d, 5.5503324e-2f));
    p = hn::MulAdd(p, r, hn::Set(d, 0.24022648f));
    p = hn::MulAdd(p, r, hn::Set(d, 0.6931472f));
    return hn::MulAdd(p, r, hn::Set(d, 1.0f));
  };
#if HWY_TARGET <= HWY_AVX3
  if constexpr (sizeof(x.raw) == 64) {
    // One instruction each: r (rounding to nearest, no exceptions), and p·2^n, 0 where tiny. The same bits as below.
    const V r{_mm512_reduce_ps(clamped.raw, 0x08)};
    const V n = hn::Sub(clamped, r);
    return V{_mm512_maskz_scalef_ps(hn::Not(tiny).raw, polynomial(r).raw, n.raw)};
  }
#endif
  // Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low bits.
  const V magic = hn::Set(d, 12582912.0f);
  const V shifted = hn::Add(clamped, magic);
  const V p = polynomial(hn::Sub(clamped, hn::Sub(shifted, magic)));
  const auto bits = hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  return hn::IfThenZeroElse(tiny, hn::BitCast(d, bits));
}

}  // namespace etc::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
