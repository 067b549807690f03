#include "tasks/openkp/head.h"

#include <fmt/format.h>

#include <cmath>

#include "etc_core/autograd/ngram.h"
#include "tasks/openkp/feed.h"

namespace etc::openkp {

Head::Head(const EncoderConfig& model, std::int64_t longest_phrase, ParameterSet& parameters) {
  using Kind = Initializer::Kind;
  const std::int64_t hidden = model.hidden_size;  // H
  const auto constant = [&](const std::string& name, Kind kind) { return &parameters.add(name, {hidden}, {kind, 0}); };
  word_gamma_ = constant("word_emb_layer_norm/gamma", Kind::ones);
  word_beta_ = constant("word_emb_layer_norm/beta", Kind::zeros);
  for (std::int64_t k = 1; k <= longest_phrase; ++k) {
    const std::string name = fmt::format("{}gram_", k);
    // A phrase's vector is a sum over k words: a standard deviation divided by √k keeps its variance equal for every k.
    const Initializer narrow{Kind::truncated_normal, kSpread / std::sqrt(static_cast<float>(k))};
    ngrams_.push_back(
        {&parameters.add(name + "conv/kernel", {k, hidden, hidden}, narrow), constant(name + "conv/bias", Kind::zeros),
         constant(name + "layer_norm/gamma", Kind::ones), constant(name + "layer_norm/beta", Kind::zeros),
         &parameters.add(fmt::format("logit_dense{}/kernel", k - 1), {hidden, 1}, {Kind::truncated_normal, kSpread})});
  }
}

HeadOutput Head::scores(Tape& tape, const Var& long_states, Examples pages) const {
  const Var sums = sum_segments(tape, long_states, tokens_of_words(pages));  // [words, H]
  const Var words = layer_norm(tape, sums, *word_gamma_, *word_beta_);       // [words, H]
  const auto rows = words_of_pages(pages);                                   // [pages + 1]: no phrase crosses pages
  HeadOutput scores;
  for (const NgramParameters& p : ngrams_) {
    Var y = ngram_convolution(tape, words, rows, *p.kernel, *p.bias);                     // [words, H]
    y = layer_norm(tape, activation(tape, y, ops::Activation::gelu), *p.gamma, *p.beta);  // [words, H]
    scores.push_back(linear(tape, y, Dense{{{p.weights, nullptr}}}));                     // [words, 1]
  }
  return scores;
}

std::vector<float> scores_of_page(const HeadOutput& scores, std::int64_t first, std::int64_t words) {
  std::vector<float> page;  // [K, words]
  for (const Var& of_length : scores) {
    const float* z = of_length.value().data() + first;  // [words] of phrases of one length
    page.insert(page.end(), z, z + words);
  }
  return page;
}

}  // namespace etc::openkp
