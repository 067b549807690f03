#include "tasks/train/plan.h"

#include "etc_core/base/error.h"
#include "etc_core/base/parallel.h"
#include "etc_core/ops/determinism.h"
#include "tasks/train/evaluate.h"

namespace etc {

namespace {

std::shared_ptr<const data::DatasetReader> open_labelled(const std::vector<std::string>& files, const Task& task,
                                                         const DataDemand& demand) {
  auto reader = open_dataset(files, task.schema(), demand);
  if (!reader->info().labelled) {
    fail(files_text(files), "the data set has no labels: expected one prepared with its answers");
  }
  return reader;
}

}  // namespace

OpenedDevice prepare_machine(const TrainingConfig& training) {
  if (training.threads > 0) set_thread_count(static_cast<int>(training.threads));
  ops::set_determinism(ops::determinism_of(training.deterministic));
  return open_device(training.device);
}

RunConfig settle_compute(RunConfig config, Device device, const std::filesystem::path& run) {
  std::string& compute = config.training.compute;
  const std::filesystem::path stored = run / "config.json";
  if (compute == "auto" && !run.empty() && std::filesystem::exists(stored)) {
    compute = resolve_config(stored, Json::object(), nullptr).training.compute;
  }
  compute = compute_type_name(chosen_compute(compute, device));
  return config;
}

ComputeType training_compute(const TrainingConfig& training) {
  const auto type = compute_type_from_name(training.compute);
  if (!type) fail("train", "training.compute: expected a settled number type, got {}", training.compute);
  return *type;
}

data::LoaderOptions training_order(const TrainingConfig& training) {
  data::LoaderOptions order;
  order.batch_examples = training.batch_size;
  order.micro_batch_tokens = training.micro_batch_tokens;
  order.seed = training.seed;
  return order;
}

RunData open_run_data(const DataConfig& files, const Task& task) {
  RunData data;
  DataDemand demand{"", files.allow_incomplete};
  data.train = open_labelled(files.train, task, demand);
  demand.vocab_sha256 = data.train->info().vocab_sha256;
  if (!files.eval.empty()) data.eval = open_labelled(files.eval, task, demand);
  return data;
}

Plan make_plan(const RunConfig& config, std::int64_t examples) {
  const TrainingConfig& training = config.training;
  if (examples < training.batch_size) {
    fail(files_text(config.data.train),
         "{} examples are less than one batch: expected at least {} (or a smaller "
         "--batch-size)",
         examples, training.batch_size);
  }
  Plan plan;
  plan.total_steps =
      training.steps > 0 ? training.steps : total_training_steps(examples, training.batch_size, training.epochs);
  if (plan.total_steps < 1) {
    fail("train", "{} examples / batch {} * {} epochs is less than one step", examples, training.batch_size,
         training.epochs);
  }
  plan.eval_every = training.eval_every > 0 ? training.eval_every : examples / training.batch_size;
  plan.schedule.initial_rate = training.learning_rate;
  plan.schedule.total_steps = plan.total_steps;
  plan.schedule.warmup_steps = warmup_training_steps(plan.total_steps, training.warmup_proportion);
  return plan;
}

}  // namespace etc
