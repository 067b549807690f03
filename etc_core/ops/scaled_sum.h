// Residual sums whose branch a trained number scales (ReZero, Bachlechner et al. 2020; dense-transformer 1.2).
#pragma once

#include <cstdint>

#include "etc_core/base/device.h"
#include "etc_core/base/kernel_slot.h"

namespace etc::ops {

// A sum with a scaled branch.
//   y = x + alpha·branch
//   x, branch, y  [size] without gaps;  alpha [1];  all on the device
// Rules: one rounding of the product and one of the sum; y may be x or branch; same bits for any thread count.
// Cost: O(size).
struct ScaledSumForward {
  std::int64_t size = 0;
  const float* x = nullptr;
  const float* branch = nullptr;
  const float* alpha = nullptr;
  float* y = nullptr;
};
void scaled_sum(Device device, const ScaledSumForward& args);

// Gradients; that of x is dy itself.
//   dbranch = alpha·dy,   dalpha += Σ dy·branch
//   dy, branch, dbranch  [size];  alpha, dalpha [1]
// dbranch, dalpha: null if not wanted. dbranch may be dy or branch.
// Rules: dalpha is a sum in double over fixed blocks of elements, combined in order: same bits for any thread count.
struct ScaledSumBackward {
  std::int64_t size = 0;
  const float* dy = nullptr;
  const float* branch = nullptr;
  const float* alpha = nullptr;
  float* dbranch = nullptr;
  float* dalpha = nullptr;
};
void scaled_sum_backward(Device device, const ScaledSumBackward& args);

extern KernelSlot<void(const ScaledSumForward&)> scaled_sum_kernel;
extern KernelSlot<void(const ScaledSumBackward&)> scaled_sum_backward_kernel;

}  // namespace etc::ops
