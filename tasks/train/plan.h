// The plan of a run, determined before its folder is touched: its data, steps and threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "data/dataset.h"
#include "data/loader/loader.h"
#include "etc_core/nn/backends.h"
#include "etc_core/optim/optimizer.h"
#include "etc_core/optim/schedule.h"
#include "tasks/task.h"
#include "tasks/train/run_config.h"

namespace etc {

// Sets up threads, kernels and the device, before anything is computed.
OpenedDevice prepare_machine(const TrainingConfig& training);

// The configuration with which the run in folder `run` was started, if there is a checkpoint to resume from; a run that
// ended before its first checkpoint starts anew, with any configuration.
std::optional<RunConfig> config_to_go_on_with(const std::filesystem::path& run);

// `config` with training.compute settled: `auto` becomes the type the run in folder `run` was started with or, without
// such a run, the faster type on this device; other values stay. Throws UsageError if the device does not support the
// type.
RunConfig settle_compute(RunConfig config, Device device, const std::filesystem::path& run);

// For a configuration whose training.compute is settled.
ComputeType training_compute(const TrainingConfig& training);

// Options of a step's passes; training.compute must be settled, too.
ForwardOptions step_options(const TrainingConfig& training, std::int64_t step);

struct RunData {
  std::shared_ptr<const data::DatasetReader> train;
  std::shared_ptr<const data::DatasetReader> eval;  // null: none
};

// The order in which the run reads its training data. Texts that continue from example to example
// (TaskKind::texts_go_on) are read in as many streams as a batch has examples; batches then end with their epoch, and
// the last one is short.
data::LoaderOptions training_order(const RunConfig& config);

std::string batch_text(const TrainingConfig& training);  // "32 examples", for messages

// Throws Error when a data set is empty, of another task or vocabulary, or has no labels.
RunData open_run_data(const DataConfig& files, const Task& task);

// Throws Error if an example has more tokens than the model's position table has rows. The message names the length of
// the longest example, which a larger table must have, rather than the first one found in a batch.
void require_position_rows(const RunConfig& config, const RunData& data, const Task& task);

// Throws UsageError for a decay β₂ of the squares with which RAdam never makes a step: ρ_∞ = 2/(1-β₂) - 1 < 5.
OptimizerOptions optimizer_options(const TrainingConfig& training);

// The number of updates, their rate, and when the run evaluates and keeps models.
struct Plan {
  std::int64_t total_steps = 0;
  std::int64_t steps_per_epoch = 0;  // whole ones
  std::int64_t eval_every = 0;
  std::int64_t keep_every = 0;  // 0: keeps none
  LearningRateSchedule schedule;
};

// Throws Error when the training data are less than one batch, or the run less than one step; UsageError when a key is
// set that belongs to another schedule, to batches by tokens or to kept models without these being in use, or when
// evaluations are to read a part of data whose scores count every question.
Plan make_plan(const RunConfig& config, const data::DatasetReader& train);

// The number of examples that an evaluation reads, the first ones of the data; 0: all.
std::int64_t examples_to_evaluate(const TrainingConfig& training);

// Logs which examples evaluations read, or that there are none.
void log_evaluation(const RunData& data, const TrainingConfig& training);

// How many samples to examine so that, for a run of `steps` steps, they include all micro-batches that may take the
// most memory, except rare ones.
std::int64_t samples_to_look_at(const TrainingConfig& training, const data::DatasetReader& train, std::int64_t steps);

}  // namespace etc
