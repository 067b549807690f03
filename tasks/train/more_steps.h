// Resuming a run with more steps than it was started with.
#pragma once

#include <filesystem>

#include "data/dataset.h"
#include "tasks/train/run_config.h"
#include "tasks/train/run_state.h"

namespace etc {

// Whether the number of successive evaluations without a better result has reached training.early_stopping.
bool stops_early(const TrainingConfig& training, const RunProgress& progress);

// Checks that the run of checkpoint `last`, whose progress is `done`, may continue with the steps of `config`, and logs
// the consequences. If the rates of the steps done do not depend on the number of steps, the run is bit for bit one
// that was started with the new number. Throws Error if there are fewer steps than the run was started with, or more
// steps but the run has stopped early. train: its data.
void take_more_steps(const std::filesystem::path& last, const RunConfig& config, const data::DatasetReader& train,
                     const RunProgress& done);

}  // namespace etc
