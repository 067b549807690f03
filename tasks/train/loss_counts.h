// What the losses of an optimiser batch are divided by.
#pragma once

#include <vector>

#include "data/loader/loader.h"
#include "etc_core/comm/communicator.h"
#include "tasks/task.h"

namespace etc {

// The denominator of each of the task's loss terms: what the examples of all processes count (Task::count), added in the
// order of the examples. Known before the first micro-batch: then accumulating equals one big batch. A call of all
// processes; batch: this one's share.
std::vector<double> loss_counts(Communicator& processes, const Task& task, const data::LoadedBatch& batch);

}  // namespace etc
