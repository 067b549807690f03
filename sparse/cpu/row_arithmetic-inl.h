// Dot products and sums of rows in whole vectors: sizes are multiples of kLanes. Highway's per-target include guard.
#if defined(SPARSE_CPU_ROW_ARITHMETIC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_ROW_ARITHMETIC_INL_H_
#undef SPARSE_CPU_ROW_ARITHMETIC_INL_H_
#else
#define SPARSE_CPU_ROW_ARITHMETIC_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "sparse/cpu/register_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// sum_c x_c y_c.   x, y [stride]
HWY_INLINE float row_dot(const float* x, const float* y, std::int64_t stride) {
  const FloatTag d;
  FloatVec sum = hn::Zero(d);
  for (std::int64_t c = 0; c < stride; c += kLanes) sum = hn::MulAdd(hn::LoadU(d, x + c), hn::LoadU(d, y + c), sum);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// sum_c x_c y_c z_c.   x, y, z [stride]
HWY_INLINE float row_dot(const float* x, const float* y, const float* z, std::int64_t stride) {
  const FloatTag d;
  FloatVec sum = hn::Zero(d);
  for (std::int64_t c = 0; c < stride; c += kLanes) {
    sum = hn::MulAdd(hn::Mul(hn::LoadU(d, x + c), hn::LoadU(d, y + c)), hn::LoadU(d, z + c), sum);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// to_c += a x_c.   x, to [stride]
HWY_INLINE void add_row(float a, const float* x, std::int64_t stride, float* to) {
  const FloatTag d;
  const FloatVec by = hn::Set(d, a);
  for (std::int64_t c = 0; c < stride; c += kLanes) {
    hn::StoreU(hn::MulAdd(by, hn::LoadU(d, x + c), hn::LoadU(d, to + c)), d, to + c);
  }
}

// to_c += a x_c y_c.   x, y, to [stride]
HWY_INLINE void add_row(float a, const float* x, const float* y, std::int64_t stride, float* to) {
  const FloatTag d;
  const FloatVec by = hn::Set(d, a);
  for (std::int64_t c = 0; c < stride; c += kLanes) {
    const FloatVec product = hn::Mul(hn::LoadU(d, x + c), hn::LoadU(d, y + c));
    hn::StoreU(hn::MulAdd(by, product, hn::LoadU(d, to + c)), d, to + c);
  }
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
