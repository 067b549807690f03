// Losses, best entries and gradient of rows of logits over a vocabulary, in one operator.
#pragma once

#include <cstdint>

#include "etc_core/base/device.h"
#include "etc_core/base/kernel_slot.h"

namespace etc::ops {

// Softmax cross-entropy of each row with its label, and the row's largest logit.
//   lse_i = log sum_v exp(z_iv),   losses_i = lse_i − z_i,label_i
//   best_i = the first v of the largest z_iv,   best_log_p_i = z_i,best_i − lse_i
//   with gradient:  z_iv = scale·(exp(z_iv − lse_i) − (1−ε)·[v = label_i] − ε/V)  replaces the logits
//   smoothed_i = (1−ε)·losses_i + ε·(lse_i − mean_v z_iv)      label smoothing, uniform over all of V (translation 6)
//   z            [M, V] without gaps, on the device; only read if there is no gradient
//   labels       [M] 0 … V−1, on the host
//   losses =, best =, best_log_p =, smoothed =   [M] on the host; all but losses may be null
// Rules: a label outside the vocabulary is an Error naming row and label. The maximum is subtracted first; nan and inf
//   among the logits make the row's loss nan. Same bits for any thread count and any neighbours.
// Cost: O(M·V), one exponential per logit; no working memory. For short groups use cross_entropy (cross_entropy.h),
// which computes in double and has more kinds of targets.
struct VocabularySoftmax {
  std::int64_t rows = 0, vocabulary = 0;  // M, V
  float* z = nullptr;
  const std::int32_t* labels = nullptr;
  bool gradient = false;
  double scale = 1;  // of the gradient: 1 / the loss's denominator
  double* losses = nullptr;
  std::int32_t* best = nullptr;
  double* best_log_p = nullptr;
  double smoothing = 0;  // ε, 0 … 1
  double* smoothed = nullptr;
};
void vocabulary_softmax(Device device, const VocabularySoftmax& args);

extern KernelSlot<void(const VocabularySoftmax&)> vocabulary_softmax_kernel;

}  // namespace etc::ops
