// Softmax over a vocabulary, one row per task. A row of some ten thousand logits stays in the second-level cache for
// all passes; each pass costs one load per vector, the second also one exponential.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "etc_core/ops/cpu/vocabulary_softmax_cpu.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per instruction set.
#include <algorithm>
#include <cmath>

#include "etc_core/base/parallel.h"
#include "etc_core/base/vector_dispatch.h"
#include "etc_core/ops/cpu/kernels.h"
#include "etc_core/ops/vocabulary_softmax.h"
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace etc::ops::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;

// The largest number of a row, or nan if the row has one: vector maxima and exponentials would lose it.
HWY_INLINE float largest_of(const float* z, std::int64_t count) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto largest = hn::Set(d, z[0]);
  auto bad = hn::IsNaN(largest);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto some = hn::LoadU(d, z + i);
    bad = hn::Or(bad, hn::IsNaN(some));
    largest = hn::Max(largest, some);
  }
  float result = hn::AllFalse(d, bad) ? hn::GetLane(hn::MaxOfLanes(d, largest)) : NAN;
  for (; i < count; ++i) {
    if (!(z[i] <= result)) result = std::isnan(result) ? result : z[i];
  }
  return result;
}

// The sum of exp(z − largest); with kStore these replace z [count]. Lanes sum a block in fp32 and blocks are added in
// double, so the error does not grow with the vocabulary.
template <bool kStore>
HWY_INLINE double exponentials(float* z, std::int64_t count, float largest) {
  constexpr std::int64_t kBlock = 1024;
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto shift = hn::Set(d, largest);
  double sum = 0;
  for (std::int64_t first = 0; first < count; first += kBlock) {
    const std::int64_t end = std::min(count, first + kBlock);
    auto lane_sums = hn::Zero(d);
    std::int64_t i = first;
    for (; i + lanes <= end; i += lanes) {
      const auto e = hn::Exp(d, hn::Sub(hn::LoadU(d, z + i), shift));
      if constexpr (kStore) hn::StoreU(e, d, z + i);
      lane_sums = hn::Add(lane_sums, e);
    }
    if (i < end) {
      const auto some = hn::FirstN(d, static_cast<std::size_t>(end - i));
      const auto e = hn::IfThenElseZero(some, hn::Exp(d, hn::Sub(hn::MaskedLoad(some, d, z + i), shift)));
      if constexpr (kStore) hn::BlendedStore(e, some, d, z + i);
      lane_sums = hn::Add(lane_sums, e);
    }
    sum += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, lane_sums)));
  }
  return sum;
}

// z = factor·z − less
HWY_INLINE void multiply(float* z, std::int64_t count, float factor, float less) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto factors = hn::Set(d, factor), lesses = hn::Set(d, less);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::Sub(hn::Mul(hn::LoadU(d, z + i), factors), lesses), d, z + i);
  }
  for (; i < count; ++i) z[i] = z[i] * factor - less;
}

// The first index of a number that occurs in the row; 0 for nan.
HWY_INLINE std::int64_t place_of(float number, const float* z, std::int64_t count) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto wanted = hn::Set(d, number);
  std::int64_t i = 0;
  while (i + lanes <= count && hn::AllFalse(d, hn::Eq(hn::LoadU(d, z + i), wanted))) i += lanes;
  const float* const found = std::find(z + i, z + count, number);
  return found == z + count ? 0 : found - z;
}

// The mean of a row; lanes sum a block as in exponentials().
HWY_INLINE double mean_of(const float* z, std::int64_t count) {
  constexpr std::int64_t kBlock = 1024;
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  double sum = 0;
  for (std::int64_t first = 0; first < count; first += kBlock) {
    const std::int64_t end = std::min(count, first + kBlock);
    auto lane_sums = hn::Zero(d);
    for (std::int64_t i = first; i < end; i += lanes) {
      const auto some = hn::FirstN(d, static_cast<std::size_t>(std::min(lanes, end - i)));
      lane_sums = hn::Add(lane_sums, hn::MaskedLoad(some, d, z + i));
    }
    sum += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, lane_sums)));
  }
  return sum / static_cast<double>(count);
}

void softmax_row(const VocabularySoftmax& a, std::int64_t row) {
  float* z = a.z + row * a.vocabulary;  // [V]
  const std::int32_t label = a.labels[row];
  // 1. The largest logit (nan if there is one, so that the loss becomes nan) and its first index.
  const float largest = largest_of(z, a.vocabulary);
  const float label_logit = z[label];
  if (a.best != nullptr) a.best[row] = static_cast<std::int32_t>(place_of(largest, z, a.vocabulary));
  const double mean = a.smoothed != nullptr && a.smoothing > 0 ? mean_of(z, a.vocabulary) : 0;
  // 2. The sum of the exponentials: lse = largest + log(sum). For the gradient they replace the logits.
  const double sum =
      a.gradient ? exponentials<true>(z, a.vocabulary, largest) : exponentials<false>(z, a.vocabulary, largest);
  const double log_sum = std::log(sum);
  a.losses[row] = log_sum + (static_cast<double>(largest) - static_cast<double>(label_logit));
  if (a.best_log_p != nullptr) a.best_log_p[row] = -log_sum;
  if (a.smoothed != nullptr) {
    const double of_all = a.smoothing > 0 ? log_sum + (static_cast<double>(largest) - mean) : 0;
    a.smoothed[row] = (1 - a.smoothing) * a.losses[row] + a.smoothing * of_all;
  }
  if (!a.gradient) return;
  // 3. dz = scale·(p − (1−ε)[v = label] − ε/V) with p = exp(z − largest)/sum.
  const double of_each = a.smoothing / static_cast<double>(a.vocabulary);
  const double at_label = a.scale * (static_cast<double>(z[label]) / sum - ((1 - a.smoothing) + of_each));
  multiply(z, a.vocabulary, static_cast<float>(a.scale / sum), static_cast<float>(a.scale * of_each));
  z[label] = static_cast<float>(at_label);
}

}  // namespace HWY_NAMESPACE
}  // namespace etc::ops::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::ops::cpu {

namespace {

void vocabulary_softmax(const VocabularySoftmax& args) {
  parallel_for(args.rows, [&](std::int64_t row) { ETC_DISPATCH(softmax_row)(args, row); });
}

}  // namespace

void register_vocabulary_softmax() {
  fill_slot(vocabulary_softmax_kernel, vocabulary_softmax);
}

}  // namespace etc::ops::cpu
#endif  // HWY_ONCE
