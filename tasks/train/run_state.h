// Everything a run needs, beside the weights, to go on with the same bits: state.safetensors of checkpoint `last`.
//
// Moments are tensors; counters and the identity of the run are JSON text in the file's metadata. A run goes on only
// where every bit would come out the same: same configuration, data, vocabulary, instruction set, program and
// libraries.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "data/loader/loader.h"
#include "etc_core/base/json.h"
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

struct RunProgress {
  std::int64_t step = 0;               // updates made
  data::LoaderPosition loader;         // behind the last batch used
  std::int64_t evaluated_step = 0;     // of the last evaluation
  std::int64_t best_step = 0;          // of the best one; 0: none yet
  Metrics best;                        // its results
  bool best_saved = true;              // in checkpoint `best`; else its weights are in `last` (BestCheckpoint)
  std::int64_t stale_evaluations = 0;  // evaluations since the best
  double last_loss = 0;                // of the last step
  double loss_sum = 0;                 // of the steps since the last line of the metrics
  std::int64_t loss_steps = 0;
};

// What must not change between the parts of one run: the resolved configuration (without what has no influence on the
// weights: threads, how often is logged and saved, when to stop early, where the data lies), the content of the data, the vocabulary, the
// instruction set, the device, the program's version and those of the libraries that compute; for bf16 on the CPU,
// whether AMX multiplies. config.training.compute must be settled (plan.h).
Json run_identity(const RunConfig& config, const OpenedDevice& device);

// Throws Error "<where>: cannot be resumed: <what>: the run was started with …, now it is …" at the first difference.
// What the stored identity, of an older program, does not say counts as a difference, unless it can be known.
void require_same_run(const Json& stored, const Json& now, const std::string& where);

// What checkpoint `last` holds.
struct RunState {
  const Json& config;  // of every checkpoint
  const ParameterSet& parameters;
  const MoreFiles& files;                        // of every checkpoint
  const std::map<std::string, Tensor>& tensors;  // Optimizer::moments() and CarriedMemory::tensors()
  const RunProgress& progress;
  const BestCheckpoint& best;
  const Json& identity;
};

// Replaces checkpoint `folder` with all of it, in one step.
void save_run(const std::filesystem::path& folder, const RunState& state);

// What goes on with a run, beside its progress.
struct RunParts {
  ParameterSet& parameters;
  Optimizer& optimizer;
  CarriedMemory& memory;  // of the first process alone
};

// Fills weights, moments, the optimizer's count of updates and memory; returns the progress. A call of all processes, of
// which the first reads the folder. Throws Error when the run is another one or a file is damaged.
RunProgress load_run(const std::filesystem::path& folder, const RunParts& parts, const Json& identity,
                     Communicator& processes = one_process());

// What the run of a checkpoint was started with, as run_identity() has it. Throws Error as load_run.
Json read_run_identity(const std::filesystem::path& folder);

// How far the run of a checkpoint is, without its weights. Throws Error as load_run.
RunProgress read_run_progress(const std::filesystem::path& folder);

}  // namespace etc
