// Layer normalisation over the last axis, alone or fused with the residual sum before it (etc-core 3, 6.1).
#pragma once

#include <cstdint>

#include "etc_core/base/bf16.h"
#include "etc_core/base/device.h"
#include "etc_core/base/kernel_slot.h"
#include "etc_core/ops/dropout.h"

namespace etc::ops {

inline constexpr float kLayerNormEpsilon = 1e-12f;

// The divisor of a row: its standard deviation or, without `centred`, its root mean square, which is the standard
// deviation with the mean taken as 0 (RMSNorm: Zhang & Sennrich 2019).
struct NormStatistics {
  float epsilon = kLayerNormEpsilon;  // added to the variance
  bool centred = true;
};

// All arrays lie on the device, except those of HiddenDropout, which lie on the host.

// Normalises every row.
//   s = x + dropout(branch)       branch null: s = x
//   y = (s − mean) · rstd · gamma + beta,   rstd = 1/sqrt(var + epsilon),   var = mean((s − mean)²);
//       (if not centred: mean = 0)
//   x, branch, y  [M, H] without gaps; y may be x or branch
//   gamma, beta   [H]
//   y_bf16 =      [M, H]  a second copy of y, rounded to nearest even, for products; null: not written. Only
//                 where keeps_bf16() (base/backend.h); H is then even
//   sum =         [M, H]  s, for backward; null: not kept; may be x or branch. Must be null with branch null: s is x
//   mean, rstd =  [M]     for backward; both or neither null
// Rules: two passes (the variance of centred values, since E[x²]−E[x]² is too inaccurate for an epsilon this small);
// the bits of a row depend on that row alone. Cost: O(M*H). Throws Error on M < 0, H < 1, missing arrays, and
// combinations of arrays not allowed above.
struct LayerNormForward {
  std::int64_t rows = 0, cols = 0;
  const float* x = nullptr;
  const float* branch = nullptr;
  HiddenDropout dropout = {};  // of branch
  const float* gamma = nullptr;
  const float* beta = nullptr;
  float* y = nullptr;
  Bf16* y_bf16 = nullptr;
  float* sum = nullptr;
  float* mean = nullptr;
  float* rstd = nullptr;
  NormStatistics statistics = {};
};
void layer_norm(Device device, const LayerNormForward& args);

// Gradients. With xhat = (s − mean)·rstd and g = dy·gamma:
//   ds = rstd · (g − mean_H(g) − xhat·mean_H(g·xhat)), without mean_H(g) if not centred
//   dgamma += sum_M dy·xhat,   dbeta += sum_M dy
//   dx (= or +=) ds,   dbranch = dropout(ds)
//   sum, mean, rstd as saved (sum is x when there was no branch);  dy, dx, dbranch [M, H]; dx may be dy
// Each of dx, dbranch (of either type), and the pair dgamma, dbeta may be null.
// Rules: dgamma and dbeta are sums over fixed blocks of rows, combined in order: same bits for any thread count.
struct LayerNormBackward {
  std::int64_t rows = 0, cols = 0;
  const float* dy = nullptr;
  const float* sum = nullptr;
  const float* mean = nullptr;
  const float* rstd = nullptr;
  const float* gamma = nullptr;
  float* dx = nullptr;
  bool add_to_dx = false;
  float* dbranch = nullptr;      // may be dy, but not dx
  Bf16* dbranch_bf16 = nullptr;  // instead, rounded to nearest even; where keeps_bf16() (base/backend.h), H then even
  HiddenDropout dropout = {};    // of branch, the same as forward
  float* dgamma = nullptr;
  float* dbeta = nullptr;
  bool centred = true;
};
void layer_norm_backward(Device device, const LayerNormBackward& args);

extern KernelSlot<void(const LayerNormForward&)> layer_norm_kernel;
extern KernelSlot<void(const LayerNormBackward&)> layer_norm_backward_kernel;

}  // namespace etc::ops
