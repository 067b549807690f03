// Rounding to integers in vectors. Highway's per-target include guard.
#if defined(ETC_BASE_NEAREST_INT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ETC_BASE_NEAREST_INT_INL_H_
#undef ETC_BASE_NEAREST_INT_INL_H_
#else
#define ETC_BASE_NEAREST_INT_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace etc::HWY_NAMESPACE {

// x rounded to the nearest integer, ties to even, for x within 32 bits; for other x and for NaN the instruction's own
// result, which with AVX2 and AVX-512 is -2^31. Highway's NearestInt takes four instructions more to return 2^31 - 1
// for large x, which is not needed here.
template <class V>
HWY_INLINE auto nearest_int(V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  constexpr std::size_t kBytes = sizeof(x.raw);
#if HWY_TARGET <= HWY_AVX3
  if constexpr (kBytes == 64) return hn::Vec512<std::int32_t>{_mm512_cvtps_epi32(x.raw)};
#endif
#if HWY_TARGET <= HWY_AVX2
  if constexpr (kBytes == 32) return hn::Vec256<std::int32_t>{_mm256_cvtps_epi32(x.raw)};
#endif
  if constexpr (kBytes != 64 && kBytes != 32) return hn::NearestInt(x);
}

}  // namespace etc::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
