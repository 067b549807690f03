// Contrastive predictive coding: each hidden sentence's prediction should be most similar to the state of that sentence
// (pretraining 2.5; van den Oord, Li and Vinyals, "Representation Learning with Contrastive Predictive Coding", 2018).
#pragma once

#include <cstdint>
#include <vector>

namespace etc::pretrain {

enum class CpcSimilarity { scaled_dot, dot, cosine };

// For m predictions c and the states t of the same m sentences; every sentence is a negative for all others:
//   logit_ij = sim(c_i, t_j) / temperature     sim: c·t/sqrt(H) | c·t | c·t/(|c|·|t|)
//   loss_i = −logit_ii + log sum_j exp(logit_ij)
//   predicted, target         [m, H]
//   dpredicted =, dtarget =   [m, H] the gradient of sum loss_i·scale; null: not computed
// Rules: for a single sentence the loss is 0; a row of zeros has a cosine of 0 with every row. Same bits for any thread
//   count. Cost: O(m²·H); memory: the logits [m, m] and, for a cosine or gradients, copies of both matrices.
struct CpcLoss {
  std::int64_t sentences = 0, width = 0;  // m, H
  const float* predicted = nullptr;
  const float* target = nullptr;
  CpcSimilarity similarity = CpcSimilarity::scaled_dot;
  double temperature = 1;
  double scale = 1;
  float* dpredicted = nullptr;
  float* dtarget = nullptr;
};
struct CpcResult {
  std::vector<double> losses;     // [m]
  std::vector<float> logits;      // [m, m]
  std::vector<bool> own_is_best;  // [m] the row's largest logit, first of equals, is that of its own sentence
};
CpcResult cpc_loss(const CpcLoss& args);

}  // namespace etc::pretrain
