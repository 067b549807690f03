// The GLUE head: the pooled first token, then one output layer (dense-transformer 4.3).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "etc_core/nn/encoder.h"
#include "etc_core/nn/encoder_config.h"
#include "etc_core/nn/parameters.h"
#include "tasks/span/head.h"

namespace etc::glue {

// p = tanh(h_CLS·W_p + b_p),  z = dropout(p)·Wᵀ + b      dropout: the model's hidden_dropout_prob, while training
//   h [T, H] → z [B, n]
// Parameters: bert/pooler/dense/kernel [H, H], bias [H], named as in BERT so that they are loaded from a checkpoint that
// has them; output_weights [n, H], output_bias [n].
class Head {
 public:
  Head(const EncoderConfig& model, std::int64_t outputs, ParameterSet& parameters);

  Var logits(Tape& tape, const Var& long_states, const EncoderInput& input, const ForwardOptions& options) const;

 private:
  float dropout_rate_;
  Dense pooler_;
  span::OutputLayer output_;
};

// Squared error (z − y)² of each of B scores; 0 where the score is missing.
//   dlogits [B] = the gradient of Σ losses·scale; null: not computed
struct ScoreLoss {
  const float* logits = nullptr;         // [B]
  std::span<const double> scores;        // [B]
  std::span<const std::uint8_t> scored;  // [B] 0: missing
  double scale = 1;
  float* dlogits = nullptr;
};
std::vector<double> score_losses(const ScoreLoss& args);

}  // namespace etc::glue
