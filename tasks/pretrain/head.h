// The heads of pre-training (pretraining 1.4, 2.4).
#pragma once

#include <optional>

#include "etc_core/autograd/functions.h"
#include "etc_core/autograd/vocabulary.h"
#include "etc_core/nn/encoder_config.h"
#include "etc_core/nn/parameters.h"
#include "tasks/pretrain/batch.h"
#include "tasks/task.h"

namespace etc::pretrain {

// Positions of a HeadOutput.
enum HeadPart : std::size_t {
  kTransformed = 0,   // [P, E_w] input of the product with the token table
  kNextSentence = 1,  // [B, 2] logits: it follows, it is random (mlm_nsp)
  kPredicted = 1,     // [m, H] of hidden sentences (mlm_cpc)
  kTarget = 2,        // [m, H] states of these sentences as separate examples
};

// For final states x [T, H] and g [U, H]:
//   z_p = LN(gelu(x_p·Wt + bt)) of the masked positions,  logit_p = z_p·Eᵀ + b   (E: the encoder's token table [V, E_w])
//   pool_b = tanh(x_first·Wp + bp),  y_b = pool_b·W_nspᵀ + b_nsp
//   c_s = g_s·W_c + b_c of hidden sentences (without projection g_s),  t_s = g of the sentence as a separate example
// The vocabulary logits are never held for all positions at once: autograd/vocabulary.h computes their loss.
// Parameters: cls/predictions/transform/dense/{kernel [H, E_w], bias}, cls/predictions/transform/LayerNorm/{gamma, beta}
// [E_w], cls/predictions/output_bias [V]; bert/pooler/dense/{kernel [H, H], bias}, cls/seq_relationship/{output_weights
// [2, H], output_bias}; cls/cpc/projection/{kernel [H, H], bias}.
class Head {
 public:
  // parameters: must contain the encoder's token table.
  Head(const EncoderConfig& model, const Options& options, ParameterSet& parameters);

  HeadOutput forward(Tape& tape, const Batch& batch, const EncoderStates& states) const;
  const VocabularyLayer& vocabulary() const { return vocabulary_; }

 private:
  VocabularyLayer vocabulary_;
  Dense transform_;
  LayerNormParameters norm_;
  std::optional<Dense> pooler_, next_sentence_, projection_;
  bool cpc_;
};

}  // namespace etc::pretrain
