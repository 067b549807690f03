// The bias of relative positions that results from Transformer-XL's two query vectors (Dai et al., 2019, section 3.3,
// terms a to d; derived in autograd/position_bias.h).
#pragma once

#include <cstdint>

#include "etc_core/base/device.h"
#include "etc_core/base/kernel_slot.h"

namespace etc::ops {

// y_rn = sum_c (v - u)_nc rel_rnc.
//   rel [R, N, D];  u, v [N, D], null: taken as 0;  y [R, N];  all on the device
// Rules: same bits for any thread count. Cost: O(R*N*D). Forward and backward throw Error on R < 0, N < 1, D < 1, and
// if rel, y or dy is missing.
struct PositionBiasForward {
  std::int64_t rows = 0, heads = 0, head_size = 0;  // R, N, D
  const float* rel = nullptr;
  const float* content = nullptr;   // u
  const float* position = nullptr;  // v
  float* y = nullptr;
};
void position_bias(Device device, const PositionBiasForward& args);

// Gradients: drel_rnc += dy_rn (v - u)_nc,  dv_nc += sum_r dy_rn rel_rnc,  du the negative of dv.
//   dy [R, N];  drel, du, dv as rel, u, v: null if not wanted
// Rules: sums over r run in order, so the bits are the same for any thread count.
struct PositionBiasBackward {
  std::int64_t rows = 0, heads = 0, head_size = 0;
  const float* rel = nullptr;
  const float* content = nullptr;
  const float* position = nullptr;
  const float* dy = nullptr;
  float* drel = nullptr;
  float* dcontent = nullptr;
  float* dposition = nullptr;
};
void position_bias_backward(Device device, const PositionBiasBackward& args);

extern KernelSlot<void(const PositionBiasForward&)> position_bias_kernel;
extern KernelSlot<void(const PositionBiasBackward&)> position_bias_backward_kernel;

}  // namespace etc::ops
