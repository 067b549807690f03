// A run that goes on with more steps than it was started with.
#pragma once

#include <cstdint>
#include <filesystem>

#include "data/dataset.h"
#include "tasks/train/run_config.h"

namespace etc {

// Whether the run of checkpoint `last`, `done` steps far, may go on with the steps of `config`; says in the log what that
// means. Where the rates of the steps done do not depend on the number of steps, the run has the bits of one that was
// started so. Throws Error where there are fewer steps than the run was started with. train: its data.
void take_more_steps(const std::filesystem::path& last, const RunConfig& config, const data::DatasetReader& train,
                     std::int64_t done);

}  // namespace etc
