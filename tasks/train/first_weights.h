// Fresh weights that a task sets from a run's first batch (tasks/first_batch.h).
#pragma once

#include <memory>

#include "data/dataset.h"
#include "data/loader/loader.h"
#include "etc_core/comm/communicator.h"
#include "tasks/train/model.h"
#include "tasks/train/run_config.h"

namespace etc {

// Call before the first step of a run that begins with fresh weights; batch: this process's share of the first batch.
// The first process sets the weights from the batch's first micro-batch, and the others receive them. A collective call;
// no effect on other tasks.
void set_first_weights(Communicator& processes, TaskModel& model, const RunConfig& config,
                       const std::shared_ptr<const data::DatasetReader>& reader, const data::LoadedBatch& batch);

}  // namespace etc
