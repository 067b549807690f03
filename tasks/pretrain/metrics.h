// Sums of what pre-training is measured by (pretraining 1.5, 2.5).
#pragma once

#include <cstdint>

#include "tasks/task.h"

namespace etc::pretrain {

// Choices of one kind: how many there were, how many were right, their losses.
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
  // cpc_choices, the mean m among which a hidden sentence was to be found (chance is 1/m). Kinds without choices are
  // left out; without a masked piece all are.
  Metrics metrics() const;
};

}  // namespace etc::pretrain
