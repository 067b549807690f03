#include "tasks/train/plan.h"

#include <algorithm>
#include <string>

#include "data/dataset_info.h"
#include "data/loader/sample_order.h"
#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "etc_core/base/parallel.h"
#include "etc_core/ops/determinism.h"
#include "tasks/registry.h"
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

// Rows of the position table that the long or global side of an input needs.
std::int64_t rows_needed(const std::vector<std::int64_t>& offsets, const std::vector<std::int32_t>& positions) {
  std::int64_t rows = 0;
  for (const std::int32_t position : positions) rows = std::max<std::int64_t>(rows, position + 1);
  if (!positions.empty()) return rows;
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b) rows = std::max(rows, offsets[b + 1] - offsets[b]);
  return rows;
}

// Feeds the longest example of the align class to see what the model would get: some tasks feed fewer tokens than they
// store.
void require_position_rows(const EncoderConfig& model, const data::DatasetReader& reader, const Task& task,
                           const std::string& where) {
  const std::int64_t rows = model.max_absolute_position_embeddings;
  const data::Schema& schema = task.schema();
  for (const std::string& align : {schema.long_align, schema.global_align}) {
    const bool stored = std::any_of(schema.features.begin(), schema.features.end(),
                                    [&](const data::FeatureSpec& feature) { return feature.align == align; });
    if (!stored) continue;
    const auto lengths = reader.lengths(align);
    const auto longest = std::max_element(lengths.begin(), lengths.end());
    if (longest == lengths.end() || *longest <= rows) continue;
    const std::int64_t index = longest - lengths.begin();
    const std::vector<data::LoadedExample> one{{index, 0, reader.read(index)}};
    const EncoderInput input = task.feed(one, where);
    for (const auto& [side, needed] :
         {std::pair("long", rows_needed(input.long_offsets, input.position_ids)),
          std::pair("global", rows_needed(input.global_offsets, input.global_position_ids))}) {
      if (needed <= rows) continue;
      fail(where,
           "the longest example has {} {} tokens: expected at most max_absolute_position_embeddings={} (positions "
           "beyond have no row in the table: prepare shorter inputs, or take a model with more rows or with relative "
           "positions)",
           needed, side, rows);
    }
  }
}

// Checks a key that only these schedules have.
void require_schedule(const TrainingConfig& training, const char* key, std::vector<std::string> names) {
  if (std::find(names.begin(), names.end(), training.schedule) != names.end()) return;
  fail_usage("config", "training.{}: a key of schedule {}, and this run's is {}", key, fmt::join(names, " and "),
             training.schedule);
}

// Checks a key that has an effect only together with another one.
void require_companion(bool given, const char* key, bool has_companion, const char* companion) {
  if (given && !has_companion) fail_usage("config", "training.{}: expected {} beside it", key, companion);
}

LearningRateSchedule schedule_of(const TrainingConfig& training, std::int64_t width, std::int64_t total_steps) {
  const TrainingConfig defaults;
  if (training.start_learning_rate != defaults.start_learning_rate)
    require_schedule(training, "start_learning_rate", {"inverse_sqrt", "linear"});
  if (training.end_learning_rate != defaults.end_learning_rate)
    require_schedule(training, "end_learning_rate", {"linear", "polynomial"});
  if (training.decay_power != defaults.decay_power) require_schedule(training, "decay_power", {"bert", "polynomial"});
  LearningRateSchedule schedule;
  schedule.kind = schedule_kind(training.schedule);
  schedule.initial_rate = training.learning_rate;
  schedule.start_rate = training.start_learning_rate;
  schedule.end_rate = training.end_learning_rate;
  schedule.power = training.decay_power;
  schedule.width = width;
  schedule.total_steps = total_steps;
  schedule.warmup_steps = training.warmup_steps > 0 ? training.warmup_steps
                                                    : warmup_training_steps(total_steps, training.warmup_proportion);
  return schedule;
}

}  // namespace

OpenedDevice prepare_machine(const TrainingConfig& training) {
  if (training.threads > 0) set_thread_count(static_cast<int>(training.threads));
  ops::set_determinism(ops::determinism_of(training.deterministic));
  return open_device(training.device);
}

std::optional<RunConfig> config_to_go_on_with(const std::filesystem::path& run) {
  if (run.empty() || !std::filesystem::exists(run / "last")) return {};
  return resolve_config(run / "config.json", Json::object(), nullptr);
}

RunConfig settle_compute(RunConfig config, Device device, const std::filesystem::path& run) {
  std::string& compute = config.training.compute;
  if (compute == "auto") {
    if (const auto before = config_to_go_on_with(run)) compute = before->training.compute;
  }
  compute = compute_type_name(chosen_compute(compute, device));
  return config;
}

ComputeType training_compute(const TrainingConfig& training) {
  const auto type = compute_type_from_name(training.compute);
  if (!type) fail("train", "training.compute: expected a settled number type, got {}", training.compute);
  return *type;
}

ForwardOptions step_options(const TrainingConfig& training, std::int64_t step) {
  ForwardOptions options;
  options.training = true;
  options.seed = training.seed;
  options.step = step;
  options.compute = training_compute(training);
  return options;
}

data::LoaderOptions training_order(const RunConfig& config) {
  const TrainingConfig& training = config.training;
  data::LoaderOptions order;
  order.batch_examples = training.batch_size;
  order.batch_tokens = training.tokens_per_batch;
  order.padded_batches = training.padded_batches;
  order.micro_batch_tokens = training.micro_batch_tokens;
  order.seed = training.seed;
  if (task_kind(task_name(config.task)).texts_go_on) {
    order.streams = training.batch_size;
    order.carry_partial = false;
  }
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

void require_position_rows(const RunConfig& config, const RunData& data, const Task& task) {
  if (config.model->max_absolute_position_embeddings == 0) return;
  require_position_rows(*config.model, *data.train, task, files_text(config.data.train));
  if (data.eval != nullptr) require_position_rows(*config.model, *data.eval, task, files_text(config.data.eval));
}

OptimizerOptions optimizer_options(const TrainingConfig& training) {
  OptimizerOptions options;
  options.kind = optimizer_kind(training.optimizer);
  options.beta_1 = training.adam_beta_1;
  options.beta_2 = training.adam_beta_2;
  options.epsilon = training.adam_epsilon;
  options.weight_decay = training.weight_decay;
  if (options.kind == OptimizerKind::radam && 2 / (1 - options.beta_2) - 1 <= 5) {
    fail_usage("config", "training.adam_beta_2: expected more than 2/3, below which radam makes no step, got {}",
               options.beta_2);
  }
  return options;
}

std::string batch_text(const TrainingConfig& training) {
  return training.tokens_per_batch > 0 ? fmt::format("{} tokens at most", training.tokens_per_batch)
                                       : fmt::format("{} examples", training.batch_size);
}

Plan make_plan(const RunConfig& config, const data::DatasetReader& train) {
  const TrainingConfig& training = config.training;
  const std::int64_t examples = train.size();
  const bool by_tokens = training.tokens_per_batch > 0;
  require_companion(training.padded_batches, "padded_batches", by_tokens, "tokens_per_batch");
  if (by_tokens && task_kind(task_name(config.task)).texts_go_on) {
    fail_usage("config",
               "training.tokens_per_batch: task {} reads texts in streams, batch_size of them: expected 0, got {}",
               task_name(config.task), training.tokens_per_batch);
  }
  if (training.eval_batches > 0 && !train.schema().gold.empty()) {
    fail_usage("config", "training.eval_batches: expected 0 with task {}, whose scores count every question, got {}",
               task_name(config.task), training.eval_batches);
  }
  require_companion(training.keep_every > 0, "keep_every", training.keep_last > 0, "keep_last");
  if (!by_tokens && examples < training.batch_size) {
    fail(files_text(config.data.train),
         "{} examples are less than one batch: expected at least {} (or a smaller "
         "--batch-size)",
         examples, training.batch_size);
  }
  Plan plan;
  plan.steps_per_epoch =
      by_tokens ? data::SampleOrder(train, training_order(config)).batches_per_epoch() : examples / training.batch_size;
  const std::int64_t of_epochs =
      by_tokens ? static_cast<std::int64_t>(static_cast<double>(plan.steps_per_epoch) * training.epochs)
                : total_training_steps(examples, training.batch_size, training.epochs);
  plan.total_steps = training.steps > 0 ? training.steps : of_epochs;
  if (plan.total_steps < 1) {
    fail(
        "train",
        "{} examples / batch {} * {} epochs is less than one step: expected a smaller batch, more --epochs, or --steps",
        examples,
        by_tokens ? fmt::format("of {} tokens", training.tokens_per_batch) : std::to_string(training.batch_size),
        training.epochs);
  }
  plan.eval_every = training.eval_every > 0 ? training.eval_every : plan.steps_per_epoch;
  if (training.keep_last > 0) plan.keep_every = training.keep_every > 0 ? training.keep_every : plan.steps_per_epoch;
  plan.schedule = schedule_of(training, config.model->hidden_size, plan.total_steps);
  return plan;
}

std::int64_t examples_to_evaluate(const TrainingConfig& training) {
  return training.eval_batches * training.batch_size;
}

void log_evaluation(const RunData& data, const TrainingConfig& training) {
  const std::int64_t most = examples_to_evaluate(training);
  if (!data.eval) {
    log::info("no --eval-data: checkpoint `best` will be the last one");
  } else if (most > 0 && most < data.eval->size()) {
    log::info("evaluations read the first {} of {} examples (training.eval_batches {})", most, data.eval->size(),
              training.eval_batches);
  }
}

std::int64_t samples_to_look_at(const TrainingConfig& training, const data::DatasetReader& train, std::int64_t steps) {
  if (training.tokens_per_batch > 0) return train.size();  // every epoch has the same batches
  constexpr std::int64_t kSamples = 20'000'000;  // half a second; micro-batches beyond them are rarely heavier
  return std::min(steps, kSamples / training.batch_size + 1) * training.batch_size;
}

}  // namespace etc
