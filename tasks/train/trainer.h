// Training: one loop for every task.
#pragma once

#include <cstdint>
#include <filesystem>

#include "etc_core/comm/communicator.h"
#include "tasks/task.h"
#include "tasks/train/run_config.h"

namespace etc {

struct TrainReport {
  std::int64_t step = 0;  // updates made in total
  Metrics best;           // of the best evaluation; empty without evaluation data
};

// Starts a run in `output`, or resumes the one that is there (with the same bits as an uninterrupted run). Throws
// Interrupted after SIGINT, SIGTERM or SIGHUP, once everything is saved; Error when the folder is in use, the data do
// not fit, the folder holds another run, the folder vanishes, or checkpoint `last` or `best` could not be saved in the
// end; Diverged (first_fault.h) at a step whose loss or gradient is not finite. Several processes call it with equal
// configurations and write the same files as one process, bit for bit: each computes a share of every batch's
// micro-batches. Only the first one needs the folder.
TrainReport train(const RunConfig& config, const std::filesystem::path& output,
                  Communicator& processes = one_process());

}  // namespace etc
