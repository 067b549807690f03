#include "tasks/train/loss_counts.h"

#include "etc_core/comm/gather_values.h"

namespace etc {

std::vector<double> loss_counts(Communicator& processes, const Task& task, const data::LoadedBatch& batch) {
  const std::size_t terms = task.loss_terms().size();
  std::vector<double> own;  // by example and term
  for (const auto& micro_batch : batch.micro_batches) {
    for (const data::LoadedExample& example : micro_batch) {
      own.resize(own.size() + terms);
      task.count(example, std::span(own).last(terms));
    }
  }
  std::vector<double> counts(terms);
  const std::vector<double> all = gather_values<double>(processes, own);
  for (std::size_t i = 0; i < all.size(); ++i) counts[i % terms] += all[i];
  return counts;
}

}  // namespace etc
