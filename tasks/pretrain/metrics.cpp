#include "tasks/pretrain/metrics.h"

namespace etc::pretrain {

Metrics PretrainSums::metrics() const {
  if (masked.count == 0) return {};
  Metrics all = {{"masked_lm_accuracy", masked.accuracy()}, {"masked_lm_loss", masked.mean_loss()}};
  if (next_sentence.count > 0) {
    all.emplace_back("next_sentence_accuracy", next_sentence.accuracy());
    all.emplace_back("next_sentence_loss", next_sentence.mean_loss());
  }
  if (hidden_sentence.count > 0) {
    const auto count = static_cast<double>(hidden_sentence.count);
    all.emplace_back("cpc_accuracy", hidden_sentence.accuracy());
    all.emplace_back("cpc_loss", hidden_sentence.mean_loss());
    all.emplace_back("cpc_sentences", count);
    all.emplace_back("cpc_choices", static_cast<double>(sentence_choices) / count);
  }
  return all;
}

}  // namespace etc::pretrain
