// Sums of squares in double, in vectors of any width with the same bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "etc_core/ops/cpu/squares_cpu.cpp"
#include "etc_core/ops/cpu/squares.h"

#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per instruction set.
#include "etc_core/base/sums.h"
#include "etc_core/base/vector_dispatch.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace etc::ops::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Adds the squares of `count` numbers, a multiple of kSquareSums, to the partial sums. Squares of floats are
// exact in double, so fused operations give the same bits as separate ones.
void add_squares(const float* values, std::int64_t count, double* sums) {
  const hn::CappedTag<double, kSquareSums> d;
  const hn::Rebind<float, decltype(d)> narrow;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  constexpr std::int64_t kVectors = kSquareSums / kLanes;
  hn::Vec<decltype(d)> sum[kVectors];
  for (std::int64_t v = 0; v < kVectors; ++v) sum[v] = hn::LoadU(d, sums + v * kLanes);
  for (std::int64_t i = 0; i < count; i += kSquareSums) {
    for (std::int64_t v = 0; v < kVectors; ++v) {
      const auto value = hn::PromoteTo(d, hn::LoadU(narrow, values + i + v * kLanes));
      sum[v] = hn::MulAdd(value, value, sum[v]);
    }
  }
  for (std::int64_t v = 0; v < kVectors; ++v) hn::StoreU(sum[v], d, sums + v * kLanes);
}

}  // namespace HWY_NAMESPACE
}  // namespace etc::ops::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::ops::cpu {

double sum_of_squares(const float* values, std::int64_t n) {
  double sums[kSquareSums] = {};
  const std::int64_t whole = n / kSquareSums * kSquareSums;
  ETC_DISPATCH(add_squares)(values, whole, sums);
  for (std::int64_t i = whole; i < n; ++i) {
    const double value = values[i];
    sums[i - whole] += value * value;
  }
  return pairwise_sum(sums);
}

}  // namespace etc::ops::cpu
#endif  // HWY_ONCE
