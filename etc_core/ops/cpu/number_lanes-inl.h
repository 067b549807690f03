// Vectors of fp32 from arrays of fp32 or bf16, and back, rounded to nearest even (Highway; per target).
#if defined(ETC_CORE_OPS_CPU_NUMBER_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ETC_CORE_OPS_CPU_NUMBER_LANES_INL_H_
#undef ETC_CORE_OPS_CPU_NUMBER_LANES_INL_H_
#else
#define ETC_CORE_OPS_CPU_NUMBER_LANES_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "etc_core/base/bf16-inl.h"
#include "etc_core/base/bf16.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace etc::ops::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// All lanes of a vector, or the first lanes only (FirstLanes). Whole vectors use no mask, because masked stores are
// slower.
struct AllLanes {
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const hn::TFromD<D>* from) const {
    return hn::LoadU(d, from);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const Bf16* from) const {
    return etc::HWY_NAMESPACE::load_bf16(d, from);
  }
  template <class D>
  HWY_INLINE void store(D d, hn::Vec<D> value, hn::TFromD<D>* to) const {
    hn::StoreU(value, d, to);
  }
  template <class D>
  HWY_INLINE void store(D d, hn::Vec<D> value, Bf16* to) const {
    hn::StoreU(etc::HWY_NAMESPACE::narrow_bf16(d, value), hn::Rebind<std::uint16_t, D>(), &to->bits);
  }
  // A store that bypasses the caches, for numbers that are not read soon; `to` is aligned to the vector.
  template <class D>
  HWY_INLINE void stream(D d, hn::Vec<D> value, hn::TFromD<D>* to) const {
    hn::Stream(value, d, to);
  }
  template <class D>
  HWY_INLINE void stream(D d, hn::Vec<D> value, Bf16* to) const {
    hn::Stream(etc::HWY_NAMESPACE::narrow_bf16(d, value), hn::Rebind<std::uint16_t, D>(), &to->bits);
  }
  // The value with 0 in unused lanes.
  template <class D>
  HWY_INLINE hn::Vec<D> or_zero(D, hn::Vec<D> value) const {
    return value;
  }
};

// A partial vector of bf16 goes through a buffer, since not every instruction set has masked loads and stores of 16-bit
// numbers.
struct FirstLanes {
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const hn::TFromD<D>* from) const {
    return hn::MaskedLoad(hn::FirstN(d, count), d, from);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const Bf16* from) const {
    if (count == hn::Lanes(d)) return AllLanes().load(d, from);
    HWY_ALIGN Bf16 some[hn::MaxLanes(D())] = {};  // [lanes], zeros after the first `count`
    std::copy_n(from, count, some);
    return AllLanes().load(d, some);
  }
  template <class D>
  HWY_INLINE void store(D d, hn::Vec<D> value, hn::TFromD<D>* to) const {
    hn::BlendedStore(value, hn::FirstN(d, count), d, to);
  }
  template <class D>
  HWY_INLINE void store(D d, hn::Vec<D> value, Bf16* to) const {
    if (count == hn::Lanes(d)) return AllLanes().store(d, value, to);
    HWY_ALIGN Bf16 some[hn::MaxLanes(D())];  // [lanes], only the first `count` are used
    AllLanes().store(d, value, some);
    std::copy_n(some, count, to);
  }
  template <class D, typename Number>
  HWY_INLINE void stream(D d, hn::Vec<D> value, Number* to) const {
    store(d, value, to);
  }
  // The high halves of the lanes.
  template <class DU>
  HWY_INLINE void store_high(DU /*du*/, hn::Vec<DU> bits, Bf16* to) const {
    const hn::Rebind<std::uint16_t, DU> narrow;
    HWY_ALIGN Bf16 some[hn::MaxLanes(DU())];
    hn::StoreU(hn::TruncateTo(narrow, hn::ShiftRight<16>(bits)), narrow, &some[0].bits);
    std::copy_n(some, count, to);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> or_zero(D d, hn::Vec<D> value) const {
    return hn::IfThenElseZero(hn::FirstN(d, count), value);
  }
  std::size_t count;  // at most the number of lanes
};

// Calls body(lanes, first) for each vector of `size` numbers, in order. The last, partial vector uses the same
// arithmetic as whole ones, so an element's bits do not depend on its position.
template <class Body>
HWY_INLINE void for_vectors(std::int64_t size, const Body& body) {
  const auto vector = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  std::int64_t i = 0;
  for (; i + vector <= size; i += vector) body(AllLanes(), i);
  if (i < size) body(FirstLanes{static_cast<std::size_t>(size - i)}, i);
}

// to [size] = x [size], rounded.
HWY_INLINE void round_row(const float* x, std::int64_t size, Bf16* to) {
  const hn::ScalableTag<float> d;
  for_vectors(size, [=](auto lanes, std::int64_t i) HWY_ATTR { lanes.store(d, lanes.load(d, x + i), to + i); });
}

// to [3][size] = the bf16 parts of x [size] (base/bf16-inl.h), `distance` numbers from part to part.
HWY_INLINE void split_row(const float* x, std::int64_t size, std::int64_t distance, Bf16* to) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::Repartition<std::uint16_t, decltype(d)> halves;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<decltype(du)> first[3], second[3];
  std::int64_t i = 0;
  // The high halves of two vectors fill one.
  for (; i + 2 * lanes <= size; i += 2 * lanes) {
    etc::HWY_NAMESPACE::split_in_bf16(d, hn::LoadU(d, x + i), first);
    etc::HWY_NAMESPACE::split_in_bf16(d, hn::LoadU(d, x + i + lanes), second);
    for (int part = 0; part < 3; ++part) {
      const auto both = hn::ConcatOdd(halves, hn::BitCast(halves, second[part]), hn::BitCast(halves, first[part]));
      hn::StoreU(both, halves, &to[part * distance + i].bits);
    }
  }
  for (; i < size; i += lanes) {
    const FirstLanes some{static_cast<std::size_t>(std::min(lanes, size - i))};
    etc::HWY_NAMESPACE::split_in_bf16(d, some.load(d, x + i), first);
    for (int part = 0; part < 3; ++part) some.store_high(du, first[part], to + part * distance + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace etc::ops::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
