// Plain loops, except for rounding: they are bound by memory, so the compiler's vectorisation suffices.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "etc_core/ops/cpu/elementwise_cpu.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per instruction set.
#include <algorithm>

#include "etc_core/base/integers.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/vector_dispatch.h"
#include "etc_core/ops/cpu/kernels.h"
#include "etc_core/ops/cpu/number_lanes-inl.h"
#include "etc_core/ops/cpu/quantize.h"
#include "etc_core/ops/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace etc::ops::cpu {
namespace HWY_NAMESPACE {

// y [size] = a + b; y may be a or b: a vector is read before it is written.
void add_bf16_range(const Bf16* a, const Bf16* b, Bf16* y, std::int64_t size) {
  const hn::ScalableTag<float> d;
  for_vectors(size, [=](auto lanes, std::int64_t i)
                        HWY_ATTR { lanes.store(d, hn::Add(lanes.load(d, a + i), lanes.load(d, b + i)), y + i); });
}

}  // namespace HWY_NAMESPACE
}  // namespace etc::ops::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::ops::cpu {

namespace {

// Elements per task: 64 KiB of each array.
constexpr std::int64_t kTaskElements = 1 << 14;

// body(first, end) for tasks of kTaskElements.
template <typename Body>
void for_ranges(std::int64_t size, Body body) {
  parallel_for(ceil_div(size, kTaskElements),
               [&](std::int64_t task) { body(task * kTaskElements, std::min(size, (task + 1) * kTaskElements)); });
}

void add(const float* a, const float* b, float* y, std::int64_t size) {
  for_ranges(size, [=](std::int64_t first, std::int64_t end) {
    for (std::int64_t i = first; i < end; ++i) y[i] = a[i] + b[i];
  });
}

void add_bf16(const Bf16* a, const Bf16* b, Bf16* y, std::int64_t size) {
  for_ranges(size, [=](std::int64_t first, std::int64_t end) {
    ETC_DISPATCH(add_bf16_range)(a + first, b + first, y + first, end - first);
  });
}

void round_array_to_bf16(const float* x, Bf16* y, std::int64_t size) {
  for_ranges(size, [=](std::int64_t first, std::int64_t end) { round_to_bf16(x + first, end - first, y + first); });
}

void axpy(float s, const float* b, float* a, std::int64_t size) {
  for_ranges(size, [=](std::int64_t first, std::int64_t end) {
    for (std::int64_t i = first; i < end; ++i) a[i] += s * b[i];
  });
}

void scale(float s, float* a, std::int64_t size) {
  for_ranges(size, [=](std::int64_t first, std::int64_t end) {
    for (std::int64_t i = first; i < end; ++i) a[i] *= s;
  });
}

}  // namespace

void register_elementwise() {
  fill_slot(add_kernel, add);
  fill_slot(add_bf16_kernel, add_bf16);
  fill_slot(round_to_bf16_kernel, round_array_to_bf16);
  fill_slot(axpy_kernel, axpy);
  fill_slot(scale_kernel, scale);
}

}  // namespace etc::ops::cpu
#endif  // HWY_ONCE
