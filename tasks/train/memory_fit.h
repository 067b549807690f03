// A run within a memory limit: which micro-batches, and whether to use activation checkpointing (recomputation in the
// backward pass).
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

// For people when memory did not suffice: the options with which the run is expected to fit into the device's memory.
std::string fitting_text(const RunConfig& config, Device device);

// The configuration with training.micro_batch_tokens and model.grad_checkpointing_period such that the process is
// expected to stay below `limit` bytes (of the device's memory if it computes on a device): as configured if that fits;
// otherwise with the largest micro-batches that fit (halved until every example is alone; a slightly slower step);
// otherwise the same with checkpointing (a third more time). Every choice computes the same gradients up to rounding.
// If folder `run` holds a checkpoint to resume from, that run's choice is kept. training.compute is settled as well
// (plan.h). Throws Error when nothing fits (the message says how long an example may be), when the choice of the
// existing run does not fit, or when no limit could have led to that choice from this configuration.
RunConfig fit_memory(const RunConfig& config, std::int64_t limit, const std::filesystem::path& run);

// Returns the parameters if their weights and gradients fit into the machine's memory. Throws Error if they do not:
// with a mistyped size every later stage would also fail, but only after minutes.
const ParameterSet& require_room(const ParameterSet& parameters, Device device);

}  // namespace etc
