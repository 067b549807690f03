// bf16 in vectors. Highway's per-target include guard.
#if defined(ETC_BASE_BF16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ETC_BASE_BF16_INL_H_
#undef ETC_BASE_BF16_INL_H_
#else
#define ETC_BASE_BF16_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "etc_core/base/bf16.h"

HWY_BEFORE_NAMESPACE();
namespace etc::HWY_NAMESPACE {

// x rounded to bf16, to nearest even, in the low half of each lane; the high half is 0. NaN stays NaN.
// To round to nearest even, add half a unit in the last kept place (less one if that place is even), then truncate.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<hwy::HWY_NAMESPACE::RebindToUnsigned<D>> bf16_bits(D /*d*/, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, x);
  const auto even = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
  const auto rounded = hn::Add(bits, hn::Add(even, hn::Set(du, 0x7FFFu)));
  const auto quiet = hn::Or(bits, hn::Set(du, 0x400000u));  // a NaN must not round to infinity
  return hn::ShiftRight<16>(hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(x)), quiet, rounded));
}

// x = parts[0] + parts[1] + parts[2] with a bf16 number in the high half of each lane and 0 in the low half. Exact for
// 2^-102 <= |x| < 3.39e38: each of the first two is the rest of x rounded to 8 significant bits (to nearest, halves away
// from 0), which leaves at most 8 bits for the last; |parts[1]| <= 2^-8 |x|, |parts[2]| <= 2^-17 |x|. If x is NaN or
// infinite, at least one part is.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE void split_in_bf16(D d, V x, hwy::HWY_NAMESPACE::Vec<hwy::HWY_NAMESPACE::RebindToUnsigned<D>> (&parts)[3]) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToUnsigned<D> du;
  const auto high = hn::Set(du, 0xFFFF0000u), half = hn::Set(du, 0x8000u);
  for (int i = 0; i < 2; ++i) {
    parts[i] = hn::And(hn::Add(hn::BitCast(du, x), half), high);
    x = hn::Sub(x, hn::BitCast(d, parts[i]));
  }
  parts[2] = hn::And(hn::BitCast(du, x), high);
}

// Loads bf16 numbers as a float vector with D's lanes, exactly; narrow_bf16() converts back, with rounding.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load_bf16(D d, const Bf16* from) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<std::uint16_t, D> narrow;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(narrow, &from->bits))));
}
// The 16 bits lie in the lower half of each lane; half a vector holds them without gaps.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE auto narrow_bf16(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::Rebind<std::uint16_t, D> narrow;
  return hn::TruncateTo(narrow, bf16_bits(d, x));
}

}  // namespace etc::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
