// Everything a run needs, besides the weights, to resume with the same bits: state.safetensors of checkpoint `last`.
//
// Moments are tensors; counters and the identity of the run are JSON text in the file's metadata. A run is resumed only
// if every bit would come out the same: same configuration, data, vocabulary, instruction set, program and libraries.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "data/loader/loader.h"
#include "etc_core/base/json_fwd.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/comm/communicator.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/parameters.h"
#include "etc_core/optim/optimizer.h"
#include "tasks/task.h"
#include "tasks/train/best_checkpoint.h"
#include "tasks/train/carried_memory.h"
#include "tasks/train/run_config.h"

namespace etc {

struct RunData;  // plan.h

struct RunProgress {
  std::int64_t step = 0;               // updates made
  data::LoaderPosition loader;         // after the last batch used
  std::int64_t evaluated_step = 0;     // of the last evaluation
  std::int64_t best_step = 0;          // of the best one; 0: none yet
  Metrics best;                        // its results
  bool best_saved = true;              // in checkpoint `best`; otherwise its weights are in `last` (BestCheckpoint)
  std::int64_t stale_evaluations = 0;  // evaluations since the best
  double last_loss = 0;                // of the last step
  double loss_sum = 0;                 // of the steps since the last line of the metrics
  std::int64_t loss_steps = 0;
};

// What must not change between the parts of one run: the resolved configuration (without settings that do not affect
// the weights: threads, intervals of logging and saving, early stopping, location of the data), the content of the
// data, the vocabulary, the instruction set, the device, the versions of the program and of the libraries that compute;
// for bf16 on the CPU, whether AMX is used. config.training.compute must be settled, and the files be open (plan.h).
Json run_identity(const RunConfig& config, const RunData& files, const OpenedDevice& device);

// Throws Error "<where>: cannot be resumed: <what>: the run was started with …, now it is …" at the first difference.
// An entry missing in the stored identity of an older program counts as a difference, unless its value is known.
void require_same_run(const Json& stored, const Json& now, const std::string& where);

// The content of checkpoint `last`.
struct RunState {
  const Json& config;  // of every checkpoint
  const ParameterSet& parameters;
  const MoreFiles& files;                        // of every checkpoint
  const std::map<std::string, Tensor>& tensors;  // Optimizer::moments() and CarriedMemory::tensors()
  const RunProgress& progress;
  const BestCheckpoint& best;
  const Json& identity;
};

// Replaces checkpoint `folder` atomically.
void save_run(const std::filesystem::path& folder, const RunState& state);

// The parts of a run that are restored on resume, besides its progress.
struct RunParts {
  ParameterSet& parameters;
  Optimizer& optimizer;
  CarriedMemory& memory;  // used in the first process only
};

// Restores weights, moments, the optimiser's update count and memory; returns the progress. A collective call; only the
// first process reads the folder. Throws Error when the checkpoint belongs to another run or a file is damaged.
RunProgress load_run(const std::filesystem::path& folder, const RunParts& parts, const Json& identity,
                     Communicator& processes = one_process());

// The identity (run_identity()) with which the run of a checkpoint was started. Throws Error as load_run.
Json read_run_identity(const std::filesystem::path& folder);

// The progress of the run of a checkpoint, without its weights. Throws Error as load_run.
RunProgress read_run_progress(const std::filesystem::path& folder);

}  // namespace etc
