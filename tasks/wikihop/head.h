// The WikiHop head: one logit per global token, a softmax over the candidates (task-wikihop 4).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "etc_core/nn/encoder.h"
#include "etc_core/nn/encoder_config.h"
#include "etc_core/nn/parameters.h"
#include "etc_core/ops/activation_kind.h"

namespace etc::wikihop {

inline constexpr double kLossEpsilon = 1e-5;  // in the loss's denominator: Σ real + 1e-5

// Logits of the global tokens.
//   y = layer_norm(x + dropout(W2·act(W1·x + b1) + b2))     the final block, where configured; else y = x
//   z = w·y + b
//   x [U, H] final global states → z [U, 1]
// Parameters (under global_output_layer/transform/ like a feed-forward layer of the encoder): dense_layers/layer_0
// [H, F], layer_1 [F, H], layer_norm; output_weights [1, H], output_bias [1].
class Head {
 public:
  // Adds the parameters. The final block's weights are initialised by Glorot's rule, unlike the encoder's; everything
  // else follows the encoder's rules.
  Head(const EncoderConfig& model, bool add_final_layer, ParameterSet& parameters);

  Var logits(Tape& tape, const Var& global_states, const EncoderInput& input, const ForwardOptions& options) const;

 private:
  struct FinalBlock {
    Parameter *kernel_0, *bias_0, *kernel_1, *bias_1, *gamma, *beta;
  };
  ops::Activation activation_;
  float dropout_rate_;
  FinalBlock block_{};  // null pointers: none
  Parameter* weights_;
  Parameter* bias_;
};

// Cross-entropy of the examples of a batch.
//   t_j = ((1−eps)·[j = label] + eps/C)·[j is a candidate],   loss = −Σ_j t_j·log_softmax(z)_j over the counted j
//   offsets [B+1] into the U global tokens;  logits, dlogits [U];  labels [B]: -1 = none, loss 0
//   counted [U]: positions in the softmax. Training counts candidates only: the reference gives the others −10000, so
//     they contribute nothing in fp32. Golden cases count every position.
//   dlogits = the gradient of Σ losses/denominator; null: not computed
// Returns the B losses, not divided.
struct CandidateLoss {
  std::span<const std::int64_t> offsets;
  const float* logits = nullptr;
  std::span<const std::uint8_t> counted;
  std::span<const std::uint8_t> candidates;
  std::span<const std::int32_t> labels;
  double label_smoothing = 0;
  double denominator = 1;
  float* dlogits = nullptr;
};
std::vector<double> candidate_losses(const CandidateLoss& args);

}  // namespace etc::wikihop
