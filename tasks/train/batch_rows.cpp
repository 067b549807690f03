#include "tasks/train/batch_rows.h"

#include "etc_core/comm/gather_values.h"
#include "tasks/whole_batch.h"

namespace etc {

namespace {

// The rows of every micro-batch, the same in every process.
BatchRows rows_of_batch(Communicator& processes, const ComparesBatch& task, const data::LoadedBatch& batch,
                        const OutputsOf& outputs) {
  struct Part {
    std::int64_t sample, rows;
  };
  std::vector<Part> parts;
  std::vector<float> numbers;
  for (const auto& micro_batch : batch.micro_batches) {
    const std::vector<float> own = task.compared_rows(outputs(micro_batch));
    numbers.insert(numbers.end(), own.begin(), own.end());
    std::int64_t rows = 0;
    for (const data::LoadedExample& example : micro_batch) rows += task.rows_of(example);
    parts.push_back({micro_batch.front().sample_ordinal, rows});
  }
  BatchRows all;
  all.numbers = gather_values<float>(processes, numbers);
  std::int64_t row = 0;
  for (const Part& part : gather_values<Part>(processes, parts)) {  // ranks have consecutive micro-batches
    all.first_row.emplace(part.sample, row);
    row += part.rows;
  }
  return all;
}

}  // namespace

void compare_batch(Communicator& processes, Task& task, const data::LoadedBatch& batch, std::span<const double> counts,
                   const OutputsOf& outputs) {
  auto* const comparing = dynamic_cast<ComparesBatch*>(&task);
  if (comparing == nullptr || !comparing->compares()) return;
  comparing->compare_micro_batches();
  if (batch.all_micro_batches > 1)
    comparing->compare_with(rows_of_batch(processes, *comparing, batch, outputs), counts);
}

}  // namespace etc
