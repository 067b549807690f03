// The output layer of a language model: a product with the token table, slice by slice, and its loss.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "etc_core/autograd/parameter.h"
#include "etc_core/ops/linear.h"
#include "etc_core/tensor/tensor.h"

namespace etc {

// logit_i = x_i·Eᵀ + b over the whole vocabulary.   x [P, E_w], E [V, E_w], b [V] or none
struct VocabularyLayer {
  Parameter* table = nullptr;                  // E: the encoder's token table, which gets a second gradient here
  Parameter* bias = nullptr;                   // b; null: none
  const ops::PackedWeights* packed = nullptr;  // E packed, used instead if no gradients are needed; null: not packed
};

// Losses and predictions of the rows of logits.
struct VocabularyResult {
  std::vector<double> losses;      // [P] −log softmax(logit_i)[label_i]
  std::vector<std::int32_t> best;  // [P] first index of the largest logit
  std::vector<double> best_log_p;  // [P] its log-probability
  std::vector<double> smoothed;    // [P] (1−ε)·losses_i + (ε/V)·Σ_v −log softmax(logit_i)[v]; without ε empty
  Tensor dx;                       // [P, E_w] with gradients, else undefined
};

// Loss, best entry and, with gradients, those of Σ losses·scale: dx is written, dE and db are added to the parameters'.
//   x        on the table's device
//   labels   [P] 0 … V−1
//   smoothing   ε of label smoothing, 0 … 1; not 0: gradients are those of Σ smoothed·scale (translation 6)
// Logits are computed, used and freed for `vocabulary_slice(V)` rows at a time, so no closure is recorded: the caller
// must add dx to the gradient of the variable whose value x is.
// Rules: those of linear(), linear_backward() (ops/linear.h) and vocabulary_softmax(): a row's numbers depend on its x,
//   label and the parameters only; dE and db are sums over the slices in order, which have the bits of one call over all
//   rows where a slice has 512 or more. Same bits for any thread count.
// Cost: 2·P·V·E_w operations, with gradients 6·P·V·E_w; memory: a slice of the logits.
VocabularyResult vocabulary_loss(const Tensor& x, const VocabularyLayer& layer, std::span<const std::int32_t> labels,
                                 double smoothing = 0);
VocabularyResult vocabulary_loss_with_gradients(const Tensor& x, const VocabularyLayer& layer,
                                                std::span<const std::int32_t> labels, double scale,
                                                double smoothing = 0);

// All logits at once, [P, V] on the table's device. No gradients. In the number type of the packed table, where there
// is one.
Tensor vocabulary_logits(const Tensor& x, const VocabularyLayer& layer);

// Rows of logits held at once: 1,024, twice the rows over which linear_backward() sums before it adds. For a large
// vocabulary fewer: at most 2^25 logits (128 MiB), but at least 64 rows. The table is packed for every slice, so
// smaller slices would spend more time on packing.
std::int64_t vocabulary_slice(std::int64_t vocabulary);

// One entry of the vocabulary and its probability.
struct VocabularyChoice {
  std::int32_t id = 0;
  double probability = 0;
};

// The k most probable entries of every row, best first, ties by lower id first; k at most V. Cost: that of the loss's
// forward, and a sort of each row.
std::vector<std::vector<VocabularyChoice>> vocabulary_choices(const Tensor& x, const VocabularyLayer& layer,
                                                              std::int64_t k);

}  // namespace etc
