// The loop of every task: batch → feed → encoder → head → loss → backward → clip → step → evaluate → save.
//
// The invariant to remember: what a run computes is a function of its identity (run_state.h) and the step alone. All
// state that outlives a step is in the weights, the optimiser's moments and RunProgress, and all three are saved
// together; so a run that was killed goes on with the same bits.
#include "tasks/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "data/loader/loader.h"  // batches
#include "etc_core/base/device_lost.h"
#include "etc_core/base/device_state.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/log.h"
#include "etc_core/base/out_of_memory.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/process_memory.h"
#include "etc_core/base/progress.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/nn/backends.h"
#include "etc_core/optim/accumulator.h"  // clipping, schedule, updates
#include "etc_core/optim/optimizer.h"
#include "etc_core/optim/schedule.h"
#include "tasks/registry.h"
#include "tasks/train/best_checkpoint.h"
#include "tasks/train/evaluate.h"  // the model and its evaluation
#include "tasks/train/forecast.h"
#include "tasks/train/memory_fit.h"
#include "tasks/train/metrics_log.h"  // what a run leaves on disk
#include "tasks/train/model.h"
#include "tasks/train/plan.h"
#include "tasks/train/run_directory.h"
#include "tasks/train/run_state.h"
#include "tasks/train/stop_signal.h"

namespace etc {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

OptimizerOptions optimizer_options(const TrainingConfig& training) {
  OptimizerOptions options;
  options.kind = optimizer_kind(training.optimizer);
  options.weight_decay = training.weight_decay;
  return options;
}

class Trainer {
 public:
  Trainer(const RunConfig& config, const OpenedDevice& device, const fs::path& output);
  TrainReport run();

 private:
  TrainReport run_steps();
  RunData open_data(const fs::path& output) const;
  DataIdentity take_vocabulary();
  void log_forecast() const;
  std::string fitting_text() const;
  void start_or_resume();
  void step(const data::LoadedBatch& batch);
  double forward_backward(Examples examples, std::span<const double> counts, FiniteChecks checks);
  [[noreturn]] void replay(const data::LoadedBatch& batch, std::span<const double> counts, const std::string& what);

  bool finished() const;
  void log_step(double norm, double rate);
  void evaluate();
  void save();
  void require_saved() const;
  void stop_on_signal();

  RunConfig config_;
  const TrainingConfig& training_ = config_.training;
  OpenedDevice device_;
  TaskModel model_;
  RunData data_;
  Plan plan_;
  MoreFiles model_files_;  // of every checkpoint: the vocabulary
  Json checkpoint_config_, identity_;
  Optimizer optimizer_;
  GradientAccumulator accumulator_;

  RunDirectory run_;
  RunProgress progress_;
  std::unique_ptr<MetricsLog> metrics_;
  BestCheckpoint best_;
  std::int64_t saved_step_ = -1;  // in checkpoint `last`
  bool saved_ = false;            // whether `last` holds all of progress_

  // Since the last line of the metrics; not part of the run's state.
  Clock::time_point speed_start_ = Clock::now();
  std::int64_t speed_examples_ = 0, speed_tokens_ = 0;
};

// Whatever can be wrong with configuration and data shows here, before the run's folder is touched.
Trainer::Trainer(const RunConfig& config, const OpenedDevice& device, const fs::path& output)
    : config_(config),
      device_(device),
      model_(*config_.model, config_.task),
      data_(open_data(output)),
      plan_(make_plan(config_, data_.train->size())),
      checkpoint_config_(checkpoint_config(model_, take_vocabulary())),
      identity_(run_identity(config_, device_)),
      optimizer_(optimizer_options(training_)),
      run_(output),
      best_(run_ / "best", checkpoint_config_, model_files_) {}

TrainReport Trainer::run() {
  try {
    return run_steps();
  } catch (const DeviceLost& error) {
    fail("train", "step {}: {}; {}", progress_.step, error.what(),
         saved_step_ < 0 ? "there is no checkpoint yet"
                         : fmt::format("the same command goes on from the checkpoint of step {}", saved_step_));
  }
}

TrainReport Trainer::run_steps() {
  log::also_to_file(run_ / "log.txt");
  log_forecast();
  memory_ledger::reset_peak();  // what is told of the run is not what the process took before
  start_or_resume();
  metrics_ = std::make_unique<MetricsLog>(run_.path(), progress_.step);
  const StopSignal listening;
  const BrokenPipeIgnored speaking_to_nobody;

  data::Loader loader(data_.train, training_order(training_), progress_.loader);

  Progress bar("train", plan_.total_steps, "steps", progress_.step);
  data::LoadedBatch batch;
  while (true) {
    const bool last = finished();
    if (data_.eval && progress_.step > progress_.evaluated_step && (progress_.step % plan_.eval_every == 0 || last)) {
      evaluate();
    }
    if (last || finished()) break;  // the evaluation may have stopped the run early
    if (progress_.step > 0 && progress_.step % training_.save_every == 0) save();
    stop_on_signal();

    loader.next(batch);
    try {
      step(batch);
    } catch (const OutOfMemory& error) {
      fail("train", "step {}: {}; {}", progress_.step, error.what(), fitting_text());
    }
    progress_.loader = batch.after;
    bar.update(progress_.step, fmt::format("loss {:.4f}", progress_.last_loss));
  }
  bar.finish();
  save();
  require_saved();
  if (!data_.eval) save_model(run_ / "best", checkpoint_config_, model_.parameters, model_files_);
  log::info("peak memory {}", memory_text(measured_memory(device_.device)));
  log::info("finished at step {}; checkpoints: {} and {}", progress_.step, (run_ / "best").string(),
            (run_ / "last").string());
  return {progress_.step, progress_.best};
}

// ---- One step. ----

void Trainer::step(const data::LoadedBatch& batch) {
  // 1. What the losses are divided by is known before the first micro-batch: then accumulating equals one big batch.
  std::vector<double> counts(model_.task->loss_terms().size());
  for (const auto& micro_batch : batch.micro_batches) {
    for (const data::LoadedExample& example : micro_batch) model_.task->count(example, counts);
  }
  // 2. Gradients of every micro-batch, summed as a pairwise tree.
  double loss = 0;
  for (const auto& micro_batch : batch.micro_batches) {
    loss += forward_backward(micro_batch, counts, FiniteChecks::off);
    if (!std::isfinite(loss)) replay(batch, counts, fmt::format("loss is {}", loss));
    accumulator_.add(take_gradients(model_.parameters));
  }
  put_gradients(model_.parameters, accumulator_.finish());
  // 3. Nothing that is not finite may reach weights or moments: they would never recover.
  const std::vector<ParamRef> parameters = param_refs(model_.parameters);
  const double norm = global_norm(parameters);
  if (!std::isfinite(norm)) replay(batch, counts, fmt::format("gradient norm is {}", norm));
  // 4. Clip and update.
  const double rate = learning_rate(plan_.schedule, progress_.step);
  optimizer_.step(parameters, rate, clip_scale(norm, training_.clip_norm));
  model_.parameters.drop_gradients();

  progress_.step += 1;
  saved_ = false;
  progress_.last_loss = loss;
  progress_.loss_sum += loss;
  progress_.loss_steps += 1;
  speed_examples_ += batch.examples;
  if (progress_.step % training_.log_every == 0 || progress_.step == plan_.total_steps) log_step(norm, rate);
}

// Loss of one micro-batch; adds nothing to older gradients, there are none.
double Trainer::forward_backward(Examples examples, std::span<const double> counts, FiniteChecks checks) {
  EncoderInput input = model_.task->feed(examples, files_text(config_.data.train));
  speed_tokens_ += input.long_tokens() + input.global_tokens();
  Tape tape(Recording::on, checks);
  ForwardOptions options;
  options.training = true;
  options.seed = training_.seed;
  options.step = progress_.step;
  options.compute = training_compute(training_);
  HeadOutput logits = model_.forward(tape, examples, input, options);
  const double loss = model_.task->loss(tape, examples, input, logits, counts);
  if (tape.checked() && !std::isfinite(loss)) fail("autograd", "first bad operator: the loss, of finite logits");
  tape.backward();
  return loss;
}

// The step once more, this time looking at every result: names what went wrong first.
void Trainer::replay(const data::LoadedBatch& batch, std::span<const double> counts, const std::string& what) {
  std::string cause = "the replay found no bad operator: sums over the whole gradient exceed the range of numbers";
  model_.parameters.drop_gradients();
  try {
    for (const auto& parameter : model_.parameters.all())
      check_finite("weights", parameter->name.c_str(), parameter->value);
    for (const auto& micro_batch : batch.micro_batches) {
      forward_backward(micro_batch, counts, FiniteChecks::on);
      model_.parameters.drop_gradients();
    }
  } catch (const Error& error) {
    cause = error.what();
    if (cause.starts_with("autograd: ")) cause.erase(0, 10);
  }
  throw Diverged(fmt::format(
      "train: {} at step {}; {} (checkpoints saved before this step are sound; try a smaller --learning-rate)", what,
      progress_.step, cause));
}

// ---- Around the steps. ----

// The vocabulary, if there is one, goes to the task and into every checkpoint: the model can then be used without
// asking where it is.
// The run's data; for a new run those that fit the checkpoint it starts from.
RunData Trainer::open_data(const fs::path& output) const {
  RunData data = open_run_data(config_.data, *model_.task);
  if (!training_.init_from.empty() && !fs::exists(output / "last")) {
    require_vocabulary_of(training_.init_from, DataIdentity::of(data.train->info()));
  }
  return data;
}

DataIdentity Trainer::take_vocabulary() {
  DataIdentity identity = DataIdentity::of(data_.train->info());
  if (config_.data.vocab.empty()) {
    if (model_.task->needs_vocabulary()) {
      fail_usage("train", "task {} writes its answers with the vocabulary of the data: expected --vocab FILE",
                 task_name(config_.task));
    }
    return identity;
  }
  const Vocabulary vocabulary(config_.data.vocab, identity.vocab_sha256);
  model_.task->use_vocabulary(vocabulary.tokenizer);
  identity.vocab_file = kept_name(*vocabulary.tokenizer);
  model_files_[identity.vocab_file] = read_file(vocabulary.path);
  return identity;
}

void Trainer::log_forecast() const {
  const ProcessMemory expected = forecast_training(config_, data_, device_.device, plan_.total_steps);
  log::info("expected peak memory {}", memory_text(expected));
  const std::int64_t machine = memory_capacity(device_.device);
  if (machine > 0 && expected.peak() > machine) {
    log::warn(
        "this is more than the memory of {:.1f} GB (with --memory-limit the program chooses --micro-batch-tokens and "
        "--grad-checkpointing-period that fit)",
        static_cast<double>(machine) / 1e9);
  }
}

// What would fit where memory did not suffice.
std::string Trainer::fitting_text() const {
  const std::string options = fitting_options(config_, memory_capacity(device_.device));
  return options.empty() ? "nothing is expected to fit (shorter examples or a smaller model need less)"
                         : options + " is expected to fit";
}

void Trainer::start_or_resume() {
  if (fs::exists(run_ / "last")) {
    progress_ = load_run(run_ / "last", model_.parameters, optimizer_, identity_);
    saved_step_ = progress_.step;
    saved_ = true;
    if (!progress_.best_saved) {
      best_.read_kept(run_ / "last", model_.parameters, progress_.step, progress_.best_step);
      best_.retry(progress_.step);
    }
    log::info("going on at step {} of {}", progress_.step, plan_.total_steps);
  } else {
    model_.parameters.initialize(training_.seed);
    if (!training_.init_from.empty()) {
      init_from_checkpoint(training_.init_from, model_, training_.resize_relative);
    }
  }
  model_.parameters.to(device_.device);
  write_file_atomically(run_ / "config.json", json_text(with_absolute_paths(config_).to_json()));
  log::info("{} examples, {} steps of {} examples, {:.2f} million weights, {} threads, {}", data_.train->size(),
            plan_.total_steps, training_.batch_size, static_cast<double>(model_.parameters.count()) / 1e6,
            thread_count(), device_.description);
  log::info("residual scores: {}", residual_text(*config_.model));
  if (!data_.eval) log::info("no --eval-data: checkpoint `best` will be the last one");
}

bool Trainer::finished() const {
  const bool stale = training_.early_stopping > 0 && progress_.stale_evaluations >= training_.early_stopping;
  return progress_.step >= plan_.total_steps || stale;
}

void Trainer::log_step(double norm, double rate) {
  run_.require_present();
  const double seconds = std::chrono::duration<double>(Clock::now() - speed_start_).count();
  metrics_->add(
      progress_.step, "train",
      {{"loss", progress_.loss_sum / static_cast<double>(progress_.loss_steps)},
       {"gradient_norm", norm},
       {"learning_rate", rate},
       {"epoch", static_cast<double>(progress_.step * training_.batch_size) / static_cast<double>(data_.train->size())},
       {"examples_per_second", static_cast<double>(speed_examples_) / seconds},
       {"tokens_per_second", static_cast<double>(speed_tokens_) / seconds},
       {"peak_memory_bytes", static_cast<double>(measured_memory(device_.device).peak())}});
  progress_.loss_sum = 0;
  progress_.loss_steps = 0;
  speed_start_ = Clock::now();
  speed_examples_ = speed_tokens_ = 0;
}

// The best checkpoint so far is kept by the task's main metric; the first of equal ones stays.
void Trainer::evaluate() {
  const auto predictions = model_.task->start_predictions({});
  if (!predict_dataset(model_, data_.eval, files_text(config_.data.eval), "evaluate", *predictions)) {
    stop_on_signal();  // the evaluation is made again by the run that goes on
  }
  const Metrics result = predictions->metrics();
  if (result.empty()) fail(files_text(config_.data.eval), "no example has a label: expected data with answers");
  progress_.evaluated_step = progress_.step;
  saved_ = false;
  metrics_->add(progress_.step, "eval", result);
  const bool better = is_better(result, progress_.best);
  log::info("step {}: {} {:.4f}{}", progress_.step, result.front().first, result.front().second,
            better ? ", the best so far" : "");
  speed_start_ = Clock::now();
  speed_examples_ = speed_tokens_ = 0;
  if (!better) {
    progress_.stale_evaluations += 1;
    return;
  }
  progress_.best = result;
  progress_.best_step = progress_.step;
  progress_.stale_evaluations = 0;
  run_.require_present();
  best_.replace(model_.parameters, progress_.step);
}

// A disk that is full or read-only does not end a run that may still find room later; the checkpoint before stays.
void Trainer::save() {
  run_.require_present();
  best_.retry(progress_.step);
  if (saved_ && progress_.best_saved == best_.saved()) return;
  progress_.best_saved = best_.saved();
  try {
    save_run(run_ / "last",
             {checkpoint_config_, model_.parameters, model_files_, optimizer_, progress_, best_, identity_});
    saved_step_ = progress_.step;
    saved_ = true;
  } catch (const std::runtime_error& error) {  // Error, or what std::filesystem throws
    saved_ = false;
    log::warn(
        "step {} not saved, {}: {}", progress_.step,
        saved_step_ < 0 ? "there is no checkpoint yet" : fmt::format("the checkpoint of step {} stays", saved_step_),
        error.what());
  }
}

// At the end of a run.
void Trainer::require_saved() const {
  if (!saved_) {
    fail("train", "the last checkpoint could not be saved{} (see the warnings above)",
         best_.saved() ? "" : ", nor could that of the best evaluation");
  }
  if (!best_.saved()) {
    fail("train",
         "checkpoint `best` could not be saved (see the warnings above): the best evaluation is that of step {}, {} "
         "{:.6g}; its weights are kept in {}, and the same command tries again",
         progress_.best_step, progress_.best.front().first, progress_.best.front().second, (run_ / "last").string());
  }
}

void Trainer::stop_on_signal() {
  if (!StopSignal::requested()) return;
  save();
  if (!saved_) fail("train", "{}: stopped at step {}, which could not be saved", StopSignal::name(), progress_.step);
  throw Interrupted(
      fmt::format("train: {}: stopped at step {} of {}, everything is saved; to go on: etc train --resume {}",
                  StopSignal::name(), progress_.step, plan_.total_steps, run_.path().string()));
}

}  // namespace

TrainReport train(const RunConfig& config, const fs::path& output) {
  const OpenedDevice device = prepare_machine(config.training);
  return Trainer(settle_compute(config, device.device, output), device, output).run();
}

}  // namespace etc
