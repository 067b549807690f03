// How long a step of a run will take in several processes, before it runs (train/step_time.h has the formula).
#pragma once

#include <string>

#include "tasks/train/run_config.h"
#include "tasks/train/step_time.h"

namespace etc::cli {

// What one process does in the run's first step: the work of its micro-batches is counted, and the rates are measured on
// a slice of the model (time_forecast.h); some seconds. The encoder's part: a head's own work is left out. Throws Error as
// train() does when the data do not fit.
StepWork measured_step(const RunConfig& config);

// The lines that `etc train --forecast --processes R` prints below the memory.
std::string step_time_text(const StepWork& work, const LinkRates& link, int processes);

}  // namespace etc::cli
