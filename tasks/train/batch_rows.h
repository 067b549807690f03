// Gives tasks that compare the examples of a whole optimiser batch their rows (tasks/whole_batch.h).
#pragma once

#include <functional>
#include <span>

#include "data/loader/loader.h"
#include "etc_core/comm/communicator.h"
#include "tasks/task.h"

namespace etc {

// The head's outputs of a micro-batch.
using OutputsOf = std::function<HeadOutput(Examples examples)>;

// Before the losses of a batch: lets a task whose loss compares examples (ComparesBatch) see the rows of all
// micro-batches, if there are several; without effect on other tasks. counts: the denominators of the batch's losses. A
// collective call; batch: this process's share.
void compare_batch(Communicator& processes, Task& task, const data::LoadedBatch& batch, std::span<const double> counts,
                   const OutputsOf& outputs);

}  // namespace etc
