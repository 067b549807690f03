// Vector loads and stores of one head's rows, in fp32 or bf16 (head_rows.h). Highway's per-target include guard.
#if defined(SPARSE_CPU_HEAD_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_HEAD_ROWS_INL_H_
#undef SPARSE_CPU_HEAD_ROWS_INL_H_
#else
#define SPARSE_CPU_HEAD_ROWS_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "etc_core/base/bf16-inl.h"
#include "sparse/cpu/head_rows.h"
#include "sparse/cpu/register_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using NarrowTag = hn::Rebind<std::uint16_t, FloatTag>;

// kLanes numbers as fp32; exact.
HWY_INLINE FloatVec load_numbers(const float* from) {
  return hn::LoadU(FloatTag(), from);
}
HWY_INLINE FloatVec load_numbers(const Bf16* from) {
  return etc::HWY_NAMESPACE::load_bf16(FloatTag(), from);
}

// Stores kLanes numbers, in bf16 rounded to nearest even; kPastCaches: with non-temporal stores.
template <bool kPastCaches>
HWY_INLINE void store_numbers(FloatVec x, float* to) {
  kPastCaches ? hn::Stream(x, FloatTag(), to) : hn::StoreU(x, FloatTag(), to);
}
template <bool kPastCaches>
HWY_INLINE void store_numbers(FloatVec x, Bf16* to) {
  const auto narrow = etc::HWY_NAMESPACE::narrow_bf16(FloatTag(), x);
  kPastCaches ? hn::Stream(narrow, NarrowTag(), &to->bits) : hn::StoreU(narrow, NarrowTag(), &to->bits);
}
HWY_INLINE void store_number(float x, float* to) {
  *to = x;
}
HWY_INLINE void store_number(float x, Bf16* to) {
  to->bits = bf16_from_float(x);
}

// to[c] = from[c]·factor, c < size; non-temporal stores need whole vectors (streams_rows()).
template <bool kPastCaches, typename T>
HWY_INLINE void store_scaled(const float* from, float factor, std::int64_t size, T* to) {
  const FloatTag d;
  const FloatVec by = hn::Set(d, factor);
  std::int64_t c = 0;
  for (; c + kLanes <= size; c += kLanes) store_numbers<kPastCaches>(hn::Mul(hn::LoadU(d, from + c), by), to + c);
  for (; c < size; ++c) store_number(from[c] * factor, to + c);
}

// to = from[0, size).
HWY_INLINE void write_row(const float* from, std::int64_t size, const MutableHeadRow& to) {
  if (to.bf16 == nullptr) {
    std::copy_n(from, size, to.fp32);
  } else {
    store_scaled<false>(from, 1.0f, size, to.bf16);
  }
}

// Sums of a bf16 row are computed in fp32, this many numbers at a time, and written once.
inline constexpr std::int64_t kSumNumbers = 128;

// Writes sums to `to`: add(first, count, sum) adds the numbers first … first+count-1 to sum[0, count), which is zero
// before.
template <typename Add>
HWY_INLINE void write_sums(std::int64_t size, const MutableHeadRow& to, const Add& add) {
  if (to.fp32 != nullptr) {  // in place
    std::fill_n(to.fp32, size, 0.0f);
    return add(std::int64_t{0}, size, to.fp32);
  }
  float sum[kSumNumbers];
  for (std::int64_t first = 0; first < size; first += kSumNumbers) {
    const std::int64_t count = std::min(kSumNumbers, size - first);
    std::fill_n(sum, count, 0.0f);
    add(first, count, sum);
    store_scaled<false>(sum, 1.0f, count, to.bf16 + first);
  }
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
