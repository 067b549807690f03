// README.md of a run's best checkpoint: what the model is, what it was made from, how good it is, how it is used.
#pragma once

#include <string>

#include "tasks/train/model.h"
#include "tasks/train/plan.h"
#include "tasks/train/run_config.h"

namespace etc {

// Markdown behind a front matter, as the model hubs read it. Of equal runs the same bytes: no date, host or folder.
//   step, metrics  of the evaluation that chose the checkpoint; no metrics: there was none
std::string model_card(const RunConfig& config, const TaskModel& model, const RunData& data, std::int64_t step,
                       const Metrics& metrics);

}  // namespace etc
