// Sums for the metrics of pre-training (pretraining 1.5, 2.5).
#pragma once

#include <cstdint>

#include "tasks/task.h"

namespace etc::pretrain {

// Predictions of one kind: their number, the number of right ones, the sum of their losses.
struct ChoiceSum {
  std::int64_t count = 0, right = 0;
  double loss = 0;

  void add(bool is_right, double of_loss) {
    ++count;
    right += is_right ? 1 : 0;
    loss += of_loss;
  }
  double accuracy() const { return static_cast<double>(right) / static_cast<double>(count); }
  double mean_loss() const { return loss / static_cast<double>(count); }
};

struct PretrainSums {
  ChoiceSum masked, next_sentence, hidden_sentence;
  std::int64_t sentence_choices = 0;  // sum of m over the hidden sentences

  // masked_lm_accuracy, masked_lm_loss; next_sentence_accuracy, _loss; cpc_accuracy, cpc_loss, cpc_sentences and
  // cpc_choices, the mean number m of candidates for a hidden sentence (chance is 1/m). Kinds without predictions are left
  // out; without a masked piece the result is empty.
  Metrics metrics() const;
};

}  // namespace etc::pretrain
