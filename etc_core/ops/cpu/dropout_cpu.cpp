// Residual sums through dropout, row by row; forward and backward are the same function.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "etc_core/ops/cpu/dropout_cpu.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per instruction set.
#include <algorithm>

#include "etc_core/base/integers.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/vector_dispatch.h"
#include "etc_core/ops/cpu/dropout_rows-inl.h"
#include "etc_core/ops/cpu/kernels.h"
#include "etc_core/ops/cpu/number_lanes-inl.h"
#include "etc_core/ops/dropout.h"

HWY_BEFORE_NAMESPACE();
namespace etc::ops::cpu {
namespace HWY_NAMESPACE {

// y = base + dropout(a) for rows [first, end).
void dropout_add_rows(const DropoutAdd& args, std::int64_t first, std::int64_t end) {
  const FloatTag d;
  const std::int64_t cols = args.cols;
  RowDropout dropout(args.dropout, first, cols);
  for (std::int64_t row = first; row < end; ++row, dropout.next()) {
    // The random words of the row, drawn before its elements are touched.
    dropout.fill();
    const float* a = args.a + row * cols;                                         // [H]
    const float* base = args.base == nullptr ? nullptr : args.base + row * cols;  // [H] or none
    float* y = args.y + row * cols;  // [H], may be a or base: every element is read before it is written
    for_vectors(cols, [&](auto lanes, std::int64_t col) HWY_ATTR {
      FloatVec value = dropout.apply(col, lanes.load(d, a + col));
      if (base != nullptr) value = hn::Add(lanes.load(d, base + col), value);
      lanes.store(d, value, y + col);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace etc::ops::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::ops::cpu {

namespace {

void dropout_add(const DropoutAdd& args) {
  constexpr std::int64_t kTaskRows = 32;
  parallel_for(ceil_div(args.rows, kTaskRows), [&](std::int64_t task) {
    ETC_DISPATCH(dropout_add_rows)(args, task * kTaskRows, std::min(args.rows, (task + 1) * kTaskRows));
  });
}

}  // namespace

void register_dropout() {
  fill_slot(dropout_add_kernel, dropout_add);
}

}  // namespace etc::ops::cpu
#endif  // HWY_ONCE
