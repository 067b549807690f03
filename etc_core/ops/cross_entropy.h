// Softmax cross-entropy over ragged groups of logits, value and gradient in one pass.
#pragma once

#include <cstdint>

#include "etc_core/base/device.h"
#include "etc_core/base/kernel_slot.h"

namespace etc::ops {

// A group is the logits of one choice: the candidates of an example, the tokens of an example, the classes of a token.
//   p_i = softmax over the counted i of group k
//   t_i = given distribution, or ((1−eps)·[i = target] + eps/C_k) with C_k the counted logits of the group
//   losses_k = sum_i −t_i·log p_i,   dlogits_i = scale·(p_i·sum_j t_j − t_i) for counted i, 0 for the others
//   logits, dlogits  element i of all groups lies at logits[i·stride], so a column of a [T, n] tensor is a legal input
//   offsets          [K+1] group k owns elements offsets[k] … offsets[k+1]-1
//   counted          [offsets[K]] 0 or 1; null: all count
//   target_index     [K] within the group; -1: no target, loss 0 and no gradient. Null if `target` is given instead
//   target           [offsets[K]] distribution; elements that do not count are not read; label smoothing must be 0
//   losses =         [K] double
//   dlogits =        null: not computed; may be logits
// Memory: logits, target, losses and dlogits lie on the device; offsets, counted and target_index on the host.
// Rules: a target index that is outside the group or not counted is an Error naming group and index. A group without
// counted logits must have target -1 or an all-zero distribution (loss 0). Also an Error: both or neither of
// target_index and target, smoothing together with target or outside [0, 1), decreasing offsets, missing arrays. The
// maximum is subtracted first; sums are in double.
// Same bits for any thread count and any neighbours. Cost: O(offsets[K]).
struct CrossEntropy {
  std::int64_t groups = 0;  // K
  const std::int64_t* offsets = nullptr;
  const float* logits = nullptr;
  std::int64_t stride = 1;
  const std::uint8_t* counted = nullptr;
  const std::int32_t* target_index = nullptr;
  const float* target = nullptr;
  float label_smoothing = 0;  // eps in [0, 1)
  double scale = 1;           // of dlogits: 1 / the loss's denominator
  double* losses = nullptr;
  float* dlogits = nullptr;
};
void cross_entropy(Device device, const CrossEntropy& args);

extern KernelSlot<void(const CrossEntropy&)> cross_entropy_kernel;

}  // namespace etc::ops
