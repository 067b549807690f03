// The OpenKP head: a score for every phrase of one to K words (task-openkp 4.2).
#pragma once

#include <vector>

#include "etc_core/nn/encoder_config.h"
#include "etc_core/nn/parameters.h"
#include "tasks/task.h"

namespace etc::openkp {

// Kernels and tables of OpenKP's layers are initialised with this standard deviation, whatever the model's
// initializer_range is (task-openkp 4).
inline constexpr float kSpread = 0.02f;

//   e_j = LN(Σ h_i over the tokens i of word j)                        word vectors
//   s_k[j] = w_k·LN_k(gelu(b_k + Σ_{t<k} W_k[t]ᵀ·e_{j+t}))               phrase of k words from word j
//   h [T, H] final long states → s_k [words of all pages, 1], k = 1 … K
// Scores of phrases that reach beyond their page are meaningless; the classes of a page leave them out.
// Parameters: word_emb_layer_norm [H]; per k: {k}gram_conv kernel [k, H, H] and bias [H], {k}gram_layer_norm [H],
// logit_dense{k−1} kernel [H, 1].
class Head {
 public:
  Head(const EncoderConfig& model, std::int64_t longest_phrase, ParameterSet& parameters);

  HeadOutput scores(Tape& tape, const Var& long_states, Examples pages) const;

 private:
  struct NgramParameters {
    Parameter *kernel, *bias, *gamma, *beta, *weights;
  };
  Parameter *word_gamma_, *word_beta_;
  std::vector<NgramParameters> ngrams_;  // [K]
};

// Scores of one page as [K, w], row-major; its w words start at row `first`.
std::vector<float> scores_of_page(const HeadOutput& scores, std::int64_t first, std::int64_t words);

}  // namespace etc::openkp
