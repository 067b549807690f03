// README.md of a run's best checkpoint: what the model is, the data it was trained on, its metrics and its usage.
#pragma once

#include <string>

#include "tasks/train/model.h"
#include "tasks/train/plan.h"
#include "tasks/train/run_config.h"

namespace etc {

// Markdown with front matter in the format of model hubs. Equal runs give the same bytes: no date, host or folder.
//   step, metrics  of the evaluation that chose the checkpoint; no metrics: there was none
std::string model_card(const RunConfig& config, const TaskModel& model, const RunData& data, std::int64_t step,
                       const Metrics& metrics);

}  // namespace etc
