// The SQuAD head: a start and an end logit per long token (dense-transformer 5.3).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tasks/task.h"

namespace etc::squad {

inline constexpr std::int64_t kEnds = 2;  // columns: start, end
inline constexpr const char* kHeadPrefix = "cls/squad/";

// Positions [B, 2] of start and end within each window, kNoTarget for data that are not for training.
std::vector<std::int64_t> labels_of(Examples examples);

// Cross-entropies over all positions of each window, the mean of start and end.
//   loss_b = (CE(start_b) + CE(end_b))/2
//   offsets [B+1]; logits, dlogits [offsets[B], 2]; labels [B, 2], kNoTarget: loss 0
//   dlogits = the gradient of Σ losses/denominator; null: not computed
// Returns the B losses, not divided by the denominator.
struct WindowLoss {
  std::span<const std::int64_t> offsets;
  const float* logits = nullptr;
  std::span<const std::int64_t> labels;
  double denominator = 1;
  float* dlogits = nullptr;
};
std::vector<double> window_losses(const WindowLoss& args);

}  // namespace etc::squad
