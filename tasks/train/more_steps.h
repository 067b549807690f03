// A run that goes on with more steps than it was started with.
#pragma once

#include <filesystem>

#include "data/dataset.h"
#include "tasks/train/run_config.h"
#include "tasks/train/run_state.h"

namespace etc {

// Whether as many evaluations in a row brought no better result as training.early_stopping bears.
bool stops_early(const TrainingConfig& training, const RunProgress& progress);

// Whether the run of checkpoint `last`, so far as `done` says, may go on with the steps of `config`; says in the log what
// that means. Where the rates of the steps done do not depend on the number of steps, the run has the bits of one that was
// started so. Throws Error where there are fewer steps than the run was started with, and where there are more but the run
// has stopped early. train: its data.
void take_more_steps(const std::filesystem::path& last, const RunConfig& config, const data::DatasetReader& train,
                     const RunProgress& done);

}  // namespace etc
