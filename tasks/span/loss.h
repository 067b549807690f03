// Losses of answer spans and answer types (task-hotpotqa 4, task-nq 4).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace etc::span {

// A label that means "none": loss 0, no gradient.
inline constexpr std::int64_t kNoLabel = -1;

// Selection of one position of each example, n times (for example begin and end): n softmaxes per example, each over
// all positions of the example.
//   loss_{b,c} = −log softmax_i(z_{i,c})[label_{b,c}]     over the positions i of example b
//   offsets          [B+1]
//   logits           [T, n]
//   labels           [B, n] position within the example; kNoLabel or any position outside it: none
//   dlogits =        [T, n] the gradient of Σ losses·scale; null: not computed
// Returns the losses [B, n]. All given positions are counted: golden cases also give the reference's padding. Same bits
// for any thread count and any neighbours. Cost: O(T·n).
struct PositionLoss {
  std::span<const std::int64_t> offsets;
  const float* logits = nullptr;
  std::int64_t choices = 1;  // n
  std::span<const std::int64_t> labels;
  double scale = 1;
  float* dlogits = nullptr;
};
std::vector<double> position_losses(const PositionLoss& args);

// Selection of one of n classes, M times (an example's answer type, a token's BIO class).
//   loss_m = −log softmax(z_m)[label_m]
//   logits           [M, n]
//   labels           [M] 0 … n−1 or kNoLabel; anything else is an Error
//   dlogits =        [M, n] the gradient of Σ losses·scale; null: not computed
// Returns the losses [M]. Same bits for any thread count and any neighbours. Cost: O(M·n).
struct ClassLoss {
  const float* logits = nullptr;
  std::int64_t classes = 1;  // n
  std::span<const std::int64_t> labels;
  double scale = 1;
  float* dlogits = nullptr;
};
std::vector<double> class_losses(const ClassLoss& args);

}  // namespace etc::span
