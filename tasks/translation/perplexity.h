// How well a model predicts the target's pieces, each after those before it (translation 6).
#pragma once

#include <cstdint>
#include <span>

#include "etc_core/autograd/vocabulary.h"
#include "tasks/task.h"

namespace etc::translation {

// Per target piece, </s> counted, smoothing left out; nll = -log2 p:
//   "log2_likelihood"  -mean nll, in bits     "perplexity"  2^(mean nll)
//   "token_accuracy"   share of pieces that are the most probable ones
class Perplexity {
 public:
  void add(const VocabularyResult& result, std::span<const std::int32_t> labels);
  Metrics metrics() const;  // none without a piece

 private:
  double nats_ = 0;
  std::int64_t pieces_ = 0, best_ = 0;
};

}  // namespace etc::translation
