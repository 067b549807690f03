// The rounds of etc_core/base/random.h in vectors, with the same numbers as philox() (a test compares them). The scalar
// function would make dropout several times as expensive. Highway's per-target include guard.
#if defined(ETC_BASE_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ETC_BASE_PHILOX_INL_H_
#undef ETC_BASE_PHILOX_INL_H_
#else
#define ETC_BASE_PHILOX_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "etc_core/base/random.h"

HWY_BEFORE_NAMESPACE();
namespace etc::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

// philox() of as many counters as `d` has 64-bit lanes. c: on input the four words of the counters, on output those of
// the results, each in the lower halves of the lanes. The upper halves hold arbitrary bits: they do not affect products
// and exclusive ors of the lower halves, so nothing has to be moved between lanes.
template <class D>
HWY_INLINE void philox_lanes(D d, hwy::HWY_NAMESPACE::Vec<D> (&c)[4], std::uint64_t key) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::Repartition<std::uint32_t, D> d32;
  const auto m0 = hn::Set(d32, kPhiloxMultiplier0), m1 = hn::Set(d32, kPhiloxMultiplier1);
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round, k0 += kPhiloxKeyStep0, k1 += kPhiloxKeyStep1) {
    // 64-bit products: their lower halves become words 1 and 3, their upper halves go into words 0 and 2.
    const auto p0 = hn::MulEven(hn::BitCast(d32, c[0]), m0);
    const auto p1 = hn::MulEven(hn::BitCast(d32, c[2]), m1);
    c[0] = hn::Xor3(hn::ShiftRight<32>(p1), c[1], hn::Set(d, std::uint64_t{k0}));
    c[1] = p1;
    c[2] = hn::Xor3(hn::ShiftRight<32>(p0), c[3], hn::Set(d, std::uint64_t{k1}));
    c[3] = p0;
  }
}

#endif

}  // namespace etc::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
