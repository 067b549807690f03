// Forecast of the step time of a run with several processes (train/step_time.h has the formula).
#pragma once

#include <string>

#include "tasks/train/run_config.h"
#include "tasks/train/step_time.h"

namespace etc::cli {

// The work of one process in the run's first step: the work of its micro-batches is counted, and the rates are measured
// on a slice of the model (time_forecast.h), which takes some seconds. Covers only the encoder; the work of the head is
// left out. Throws Error as train() does when the data do not fit.
StepWork measured_step(const RunConfig& config);

// The lines that `etc train --forecast --processes R` prints below the memory forecast.
std::string step_time_text(const StepWork& work, const LinkRates& link, int processes);

}  // namespace etc::cli
