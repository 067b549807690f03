// Denominators of the losses of an optimiser batch.
#pragma once

#include <vector>

#include "data/loader/loader.h"
#include "etc_core/comm/communicator.h"
#include "tasks/task.h"

namespace etc {

// The denominator of each of the task's loss terms: the counts of the examples of all processes (Task::count), added in
// the order of the examples. Known before the first micro-batch, so that gradient accumulation equals one big batch. A
// collective call; batch: this process's share.
std::vector<double> loss_counts(Communicator& processes, const Task& task, const data::LoadedBatch& batch);

}  // namespace etc
