// A run in a given amount of memory: which micro-batches, and whether layers are computed again in the backward pass.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "etc_core/base/process_memory.h"
#include "tasks/train/run_config.h"

namespace etc {

// Expected peak memory of each of the processes of a run, from configuration and data alone; writes nothing. Throws
// Error as train() does when the data do not fit.
ProcessMemory forecast_memory(const RunConfig& config, int processes = 1);

// For people where memory did not suffice: the options with which the run is expected to fit into the device's.
std::string fitting_text(const RunConfig& config, Device device);

// The configuration with training.micro_batch_tokens and model.grad_checkpointing_period such that the process is
// expected to stay below `limit` bytes (of the device's memory when it computes there): as configured if that fits,
// else with the largest micro-batches that do (halved until every example is alone; a slightly slower step), else so
// with checkpointing (a third more time). Every choice computes the same gradients up to rounding. Where folder `run`
// holds a checkpoint to go on from, that run's choice is kept. training.compute is settled as well (plan.h). Throws Error
// when nothing fits, telling how long an example may be, when the choice of the run there does not, or when no limit
// could have led to it from this configuration.
RunConfig fit_memory(const RunConfig& config, std::int64_t limit, const std::filesystem::path& run);

// The parameters themselves, whose weights and gradients have room in the machine. Throws Error where they do not: of a
// size that was mistyped everything else, too, would take minutes before it fails.
const ParameterSet& require_room(const ParameterSet& parameters, Device device);

}  // namespace etc
