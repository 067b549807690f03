// The vocabulary's pieces as labels of rows of states: their loss, and the quality of their prediction (pretraining
// 1.4, translation 6).
#pragma once

#include <cstdint>
#include <span>

#include "etc_core/autograd/tape.h"
#include "etc_core/autograd/vocabulary.h"
#include "tasks/task.h"

namespace etc::span {

// Losses of rows of states [P, E_w] on any device, without gradients.
VocabularyResult piece_result(const Var& states, const VocabularyLayer& layer, std::span<const std::int32_t> labels);

// Σ losses·scale of these rows, with label smoothing ε (autograd/vocabulary.h); when the tape records, gradients are
// propagated to the states and the layer's parameters.
double piece_loss(Tape& tape, const Var& states, const VocabularyLayer& layer, std::span<const std::int32_t> labels,
                  double scale, double smoothing = 0);

// The quality of the prediction of pieces, each from the pieces before it. Label smoothing is not applied; nll = -log2
// p:
//   "log2_likelihood"  -mean nll, in bits     "perplexity"  2^(mean nll)
//   "token_accuracy"   share of pieces that are the most probable ones
class Perplexity {
 public:
  void add(const VocabularyResult& result, std::span<const std::int32_t> labels);
  Metrics metrics() const;  // none without a piece
  double bits() const;      // of all pieces

 private:
  double nats_ = 0;
  std::int64_t pieces_ = 0, best_ = 0;
};

}  // namespace etc::span
