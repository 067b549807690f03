// What a run is going to do, found out before its folder is touched: its data, its steps, its threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/loader/loader.h"
#include "etc_core/nn/backends.h"
#include "etc_core/optim/optimizer.h"
#include "etc_core/optim/schedule.h"
#include "tasks/task.h"
#include "tasks/train/run_config.h"

namespace etc {

// Threads, kernels and the device, before anything is computed.
OpenedDevice prepare_machine(const TrainingConfig& training);

// What the run in folder `run` began with, where there is a checkpoint of it to go on from; a run that ended before its
// first one begins anew, with anything.
std::optional<RunConfig> config_to_go_on_with(const std::filesystem::path& run);

// `config` with training.compute settled: auto becomes what the run in folder `run` began with or, where there is none,
// what the device does faster; other words stay. Throws UsageError where the device does not offer it.
RunConfig settle_compute(RunConfig config, Device device, const std::filesystem::path& run);

// Of a configuration whose training.compute is settled.
ComputeType training_compute(const TrainingConfig& training);

// Of a step's passes; configuration settled, too.
ForwardOptions step_options(const TrainingConfig& training, std::int64_t step);

struct RunData {
  std::shared_ptr<const data::DatasetReader> train;
  std::shared_ptr<const data::DatasetReader> eval;  // null: none
};

// How the run reads its training data. Texts that go on from example to example (TaskKind::texts_go_on) are read in as
// many streams as a batch has examples; batches then end with their epoch, the last one being short.
data::LoaderOptions training_order(const RunConfig& config);

std::string batch_text(const TrainingConfig& training);  // "32 examples", for messages

// Throws Error when a data set is empty, of another task or vocabulary, or has no labels.
RunData open_run_data(const DataConfig& files, const Task& task);

// Throws Error where an example has more tokens than the model's table of positions has rows: it tells the length of the
// longest one, which is what a larger table must have, and not of the first that a batch happens to hold.
void require_position_rows(const RunConfig& config, const RunData& data, const Task& task);

// Throws UsageError on a decay of the squares with which RAdam never makes a step: ρ_∞ = 2/(1-β₂) - 1 < 5.
OptimizerOptions optimizer_options(const TrainingConfig& training);

// How many updates there are, with which rate, and when the run looks up from its work.
struct Plan {
  std::int64_t total_steps = 0;
  std::int64_t steps_per_epoch = 0;  // whole ones
  std::int64_t eval_every = 0;
  std::int64_t keep_every = 0;  // 0: nothing is kept
  LearningRateSchedule schedule;
};

// Throws Error when the training data are less than one batch, or the run less than one step, UsageError where a key of the
// schedule, of batches by tokens or of kept models is set without it.
Plan make_plan(const RunConfig& config, const data::DatasetReader& train);

// The samples in which every micro-batch of a run of so many steps comes that takes the most memory, but rare ones.
std::int64_t samples_to_look_at(const TrainingConfig& training, const data::DatasetReader& train, std::int64_t steps);

}  // namespace etc
