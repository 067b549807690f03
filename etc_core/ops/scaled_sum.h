// Residual sums with one scaled term: by one number (ReZero, Bachlechner et al. 2020; dense-transformer 1.2) or by one
// number per column (ADMIN, Liu et al. 2020; translation 3).
#pragma once

#include <cstdint>

#include "etc_core/base/device.h"
#include "etc_core/base/kernel_slot.h"

namespace etc::ops {

// A sum with a scaled branch.
//   y_i = x_i + alpha_(i mod alphas)·branch_i
//   x, branch, y  [size] without gaps;  alpha [alphas], 1 or the columns of a matrix [size/alphas, alphas];  all on the
//   device
// Rules: the product and the sum are each rounded once; y may be x or branch; same bits for any thread count.
// Cost: O(size). Forward and backward throw Error on size < 0, on alphas < 1 or not a divisor of size, and on missing
// arrays.
struct ScaledSumForward {
  std::int64_t size = 0;
  const float* x = nullptr;
  const float* branch = nullptr;
  const float* alpha = nullptr;
  float* y = nullptr;
  std::int64_t alphas = 1;
};
void scaled_sum(Device device, const ScaledSumForward& args);

// Gradients; that of x is dy itself.
//   dbranch = alpha·dy,   dalpha += Σ dy·branch, per column if there are several alphas
//   dy, branch, dbranch  [size];  alpha, dalpha [alphas]
// dbranch, dalpha: null if not wanted. dbranch may be dy or branch.
// Rules: dalpha is a sum in double over fixed blocks of elements, combined in order: same bits for any thread count.
struct ScaledSumBackward {
  std::int64_t size = 0;
  const float* dy = nullptr;
  const float* branch = nullptr;
  const float* alpha = nullptr;
  float* dbranch = nullptr;
  float* dalpha = nullptr;
  std::int64_t alphas = 1;
};
void scaled_sum_backward(Device device, const ScaledSumBackward& args);

extern KernelSlot<void(const ScaledSumForward&)> scaled_sum_kernel;
extern KernelSlot<void(const ScaledSumBackward&)> scaled_sum_backward_kernel;

}  // namespace etc::ops
