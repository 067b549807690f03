// The training loop of every task: batch → feed → encoder → head → loss → backward → clip → step → evaluate → save.
//
// Invariant: what a run computes is a function only of its identity (run_state.h) and the step. All state that outlives
// a step is in the weights, the optimiser's moments, the memory of streams and RunProgress, which are all saved
// together; so a killed run resumes with the same bits.
#include "tasks/train/trainer.h"

#include <cmath>
#include <utility>

#include "data/loader/loader.h"  // batches
#include "data/loader/order.h"
#include "etc_core/base/device_lost.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/log.h"
#include "etc_core/base/out_of_memory.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/process_memory.h"
#include "etc_core/base/progress.h"
#include "etc_core/comm/gather_values.h"  // several processes
#include "etc_core/nn/backends.h"
#include "etc_core/optim/optimizer.h"  // clipping, schedule, updates
#include "etc_core/optim/process_sum.h"
#include "etc_core/optim/schedule.h"
#include "sparse/attention_checks.h"
#include "tasks/train/agreement.h"
#include "tasks/train/batch_rows.h"
#include "tasks/train/carried_memory.h"
#include "tasks/train/evaluate.h"  // the model and its evaluation
#include "tasks/train/first_fault.h"
#include "tasks/train/first_weights.h"
#include "tasks/train/forecast.h"
#include "tasks/train/kept_files.h"
#include "tasks/train/loss_counts.h"
#include "tasks/train/memory_fit.h"
#include "tasks/train/model.h"
#include "tasks/train/model_card.h"
#include "tasks/train/more_steps.h"
#include "tasks/train/plan.h"
#include "tasks/train/run_record.h"  // what a run leaves on disk
#include "tasks/train/save_schedule.h"
#include "tasks/train/shared_state.h"
#include "tasks/train/stop_signal.h"
#include "tasks/train/throughput.h"
#include "tasks/train/traffic.h"

namespace etc {

namespace fs = std::filesystem;

namespace {

// Of one micro-batch.
struct PassResult {
  double loss = 0;
  std::int64_t tokens = 0;
};

class Trainer {
 public:
  Trainer(const RunConfig& config, const OpenedDevice& device, const fs::path& output, Communicator& processes);
  TrainReport run();

 private:
  TrainReport run_steps();
  RunData open_data(const fs::path& output) const;
  DataIdentity take_vocabulary();
  std::string card(const Metrics& metrics) const { return model_card(config_, model_, data_, progress_.step, metrics); }
  void start_or_resume();
  void log_start() const;
  void train_on(const data::LoadedBatch& batch);
  void step(const data::LoadedBatch& batch);
  double compute(const data::LoadedBatch& batch, std::span<const double> counts);
  PassResult forward_backward(Examples examples, std::span<const double> counts, Tape& tape);
  HeadOutput forward(Examples examples, Tape& tape, EncoderInput& input);
  void update(std::span<const ParamRef> parameters, double rate, double gradient_scale);
  [[noreturn]] void replay(const data::LoadedBatch& batch, std::span<const double> counts, const std::string& what);
  bool finished() const;
  void log_step(double norm, double rate);
  void evaluate();
  void save();
  void end_record();
  void stop_on_signal();
  const Division* divided_moments() const {
    return training_.shard_moments && processes_.size() > 1 ? &division_ : nullptr;
  }

  RunConfig config_;
  const TrainingConfig& training_ = config_.training;
  OpenedDevice device_;
  Communicator& processes_;
  TaskModel model_;
  RunData data_;
  Plan plan_;
  SaveSchedule save_schedule_{training_.save_every};
  MoreFiles model_files_;  // of every checkpoint: the vocabulary
  Json checkpoint_config_, identity_;
  Shards shards_;  // owners of gradient sums, and of updates with sharded moments
  Division division_{processes_, shards_};
  Optimizer optimizer_;
  ProcessSum sum_;
  CarriedMemory memory_;  // of the streams, at progress_.step

  RunProgress progress_;               // the same in every process
  std::unique_ptr<RunRecord> record_;  // null: not the first process

  Throughput throughput_;
  std::int64_t samples_ = 0;  // used so far
};

// All errors of configuration and data are found here, before the run's folder is touched.
Trainer::Trainer(const RunConfig& config, const OpenedDevice& device, const fs::path& output, Communicator& processes)
    : config_(config),
      device_(device),
      processes_(processes),
      model_(*config_.model, config_.task),
      data_(open_data(output)),
      plan_(make_plan(config_, *data_.train)),
      checkpoint_config_(checkpoint_config(model_, take_vocabulary())),
      identity_(run_identity(config_, data_, device_)),
      shards_(require_room(model_.parameters, device_.device), processes.size(), training_.bucket_bytes),
      optimizer_(optimizer_options(training_), divided_moments()),
      sum_(division_, model_.parameters,
           divided_moments() != nullptr ? ProcessSum::Result::own_share : ProcessSum::Result::whole) {
  memory_.serve(model_);
  if (processes_.size() > 1) require_agreement(processes_, agreement_of(config_, identity_));  // reads the program
  division_.rounds = rounds_between(processes_, device_.device);
  if (processes_.first()) record_ = std::make_unique<RunRecord>(output, checkpoint_config_, model_files_);
}

TrainReport Trainer::run() {
  try {
    return run_steps();
  } catch (const DeviceLost& error) {
    const std::int64_t saved = record_ ? record_->saved_step() : -1;
    fail("train", "step {}: {}; {}", progress_.step, error.what(),
         saved < 0 ? "there is no checkpoint yet"
                   : fmt::format("the same command goes on from the checkpoint of step {}", saved));
  } catch (const Diverged& error) {
    throw Diverged(fmt::format("{}; {} (try a smaller --learning-rate or a larger --adam-epsilon)", error.what(),
                               from_first(processes_, record_ ? record_->saved_text() : "")));
  } catch (const sparse::ScoresOutOfRange& error) {
    const std::string text = fmt::format("train: step {}: {}", progress_.step, error.what());
    // With several processes only one may have found it, while the others wait for its gradients: end all of them.
    if (processes_.size() > 1) throw Error(text);
    throw Diverged(text);
  }
}

TrainReport Trainer::run_steps() {
  if (record_) log::also_to_file(record_->folder() / "log.txt");
  if (training_.early_stopping > 0 && !data_.eval) {
    log::warn("training.early_stopping: {} changes nothing without --eval-data", training_.early_stopping);
  }
  log_forecast(config_, data_, device_.device, plan_.total_steps, processes_.size());
  memory_ledger::reset_peak();  // the peak reported for the run excludes earlier memory of the process
  start_or_resume();
  const StopSignal stop_signal;
  const BrokenPipeIgnored broken_pipe_ignored;

  data::LoaderOptions order = training_order(config_);
  order.rank = processes_.rank();
  order.ranks = processes_.size();
  data::Loader loader(data_.train, order, progress_.loader);

  const Traffic traffic(processes_);
  const std::int64_t first_step = progress_.step;
  Progress bar("train", plan_.total_steps, "steps", progress_.step);
  data::LoadedBatch batch;
  while (true) {
    const bool last = finished();
    if (data_.eval && progress_.step > progress_.evaluated_step && (progress_.step % plan_.eval_every == 0 || last)) {
      evaluate();
    }
    if (last || finished()) break;  // the evaluation may have stopped the run early
    if (save_schedule_.due(progress_.step, processes_)) save();
    stop_on_signal();

    loader.next(batch);
    if (progress_.step == first_step && batch.all_micro_batches < processes_.size()) {
      log::warn("the first batch keeps {} of {} processes busy (smaller --micro-batch-tokens make more micro-batches)",
                batch.all_micro_batches, processes_.size());
    }
    train_on(batch);
    bar.update(progress_.step, fmt::format("loss {:.4f}", progress_.last_loss));
  }
  bar.finish();
  if (progress_.step < plan_.total_steps) {
    log::info("stopped early, after {} evaluations without a better result", progress_.stale_evaluations);
  }
  traffic.log(progress_.step - first_step);
  save();
  end_record();
  return {progress_.step, progress_.best};
}

void Trainer::end_record() {
  log::info("peak memory {}", memory_text(measured_memory(device_.device)));
  if (!record_) return;
  record_->require_saved(progress_);
  if (!data_.eval) record_->save_as_best(model_.parameters, card({}));
  record_->report_end(progress_);
}

// ---- One step. ----

// The step, and what comes before the first one and after some of them.
void Trainer::train_on(const data::LoadedBatch& batch) {
  try {
    if (progress_.step == 0 && training_.init_from.empty()) {
      set_first_weights(processes_, model_, config_, data_.train, batch);
    }
    step(batch);
  } catch (const OutOfMemory& error) {
    fail("train", "step {}: {}; {}", progress_.step, error.what(), fitting_text(config_, device_.device));
  }
  progress_.loader = batch.after;
  if (plan_.keep_every > 0 && progress_.step % plan_.keep_every == 0) {
    require_sound_weights(model_.parameters, progress_.step);
    if (record_) record_->keep(model_.parameters, progress_.step, training_.keep_last);
  }
}

void Trainer::step(const data::LoadedBatch& batch) {
  // 1. Get the memory that segments continue from, and what the losses of micro-batches have in common.
  if (model_.memory != nullptr) memory_.fetch(processes_, *model_.task, batch.micro_batches);
  const std::vector<double> counts = loss_counts(processes_, *model_.task, batch);
  compare_batch(processes_, *model_.task, batch, counts, [&](Examples examples) {
    Tape tape(Recording::on);  // as training requires, although there is no backward pass
    EncoderInput input;
    return forward(examples, tape, input);
  });
  // 2. Compute gradients of every micro-batch, each in one of the processes, and add them as one tree.
  const double loss = compute(batch, counts);
  GradientSet sum = sum_.finish();  // even if the loss is not finite: gradients are being sent
  if (!std::isfinite(loss)) replay(batch, counts, fmt::format("loss is {}", loss));
  put_gradients(model_.parameters, std::move(sum));
  // 3. No non-finite value may reach weights or moments: they would never recover.
  const std::vector<ParamRef> parameters = param_refs(model_.parameters);
  const double norm = global_norm(parameters, divided_moments());
  if (!std::isfinite(norm)) replay(batch, counts, fmt::format("gradient norm is {}", norm));
  // 4. Clip and update.
  const double rate = learning_rate(plan_.schedule, progress_.step);
  update(parameters, rate, clip_scale(norm, training_.clip_norm));
  model_.parameters.drop_gradients();
  memory_.commit();
  progress_.step += 1;
  progress_.last_loss = loss;
  progress_.loss_sum += loss;
  progress_.loss_steps += 1;
  throughput_.add_examples(batch.all_examples);
  samples_ = batch.after.samples;
  if (progress_.step % training_.log_every == 0 || progress_.step == plan_.total_steps) log_step(norm, rate);
}

// Loss of the batch, added in the order of the micro-batches up to the first non-finite sum. Their gradients are added
// to the sum, with several processes already while the backward pass is running.
double Trainer::compute(const data::LoadedBatch& batch, std::span<const double> counts) {
  std::vector<PassResult> own;
  std::vector<LeafRange> of_rank;
  for (int rank = 0; rank < processes_.size(); ++rank) {
    const data::Share share = data::share_of(batch.all_micro_batches, rank, processes_.size());
    of_rank.push_back({share.begin, share.end});
  }
  sum_.begin(of_rank);
  for (const auto& micro_batch : batch.micro_batches) {
    const std::int64_t leaf = batch.first_micro_batch + std::ssize(own);
    Tape tape(Recording::on);
    if (processes_.size() > 1) tape.announce_final([&](const Parameter& parameter) { sum_.take(leaf, parameter); });
    own.push_back(forward_backward(micro_batch, counts, tape));
    sum_.take_rest(leaf);
  }
  double loss = 0;
  for (const PassResult& each : gather_values<PassResult>(processes_, own)) {
    if (std::isfinite(loss)) loss += each.loss;
    throughput_.add_tokens(each.tokens);
  }
  return loss;
}

HeadOutput Trainer::forward(Examples examples, Tape& tape, EncoderInput& input) {
  input = model_.task->feed(examples, files_text(config_.data.train));
  return model_.forward(tape, examples, input, step_options(training_, progress_.step));
}

// Gradients are written, not accumulated: there are no older ones.
PassResult Trainer::forward_backward(Examples examples, std::span<const double> counts, Tape& tape) {
  EncoderInput input;
  HeadOutput logits = forward(examples, tape, input);
  const double loss = model_.task->loss(tape, examples, input, logits, counts);
  if (tape.checked() && !std::isfinite(loss)) fail("autograd", "first bad operator: the loss, of finite logits");
  tape.backward();
  return {loss, input.long_tokens() + input.global_tokens()};
}

void Trainer::update(std::span<const ParamRef> parameters, double rate, double gradient_scale) {
  optimizer_.step(parameters, rate, gradient_scale);
  if (divided_moments() == nullptr) return;
  std::vector<Tensor> updated;
  for (const auto& parameter : model_.parameters.all())
    updated.push_back(parameter->grad ? parameter->value : Tensor());
  spread(division_, updated);
}

// Repeats the step with every result checked.
void Trainer::replay(const data::LoadedBatch& batch, std::span<const double> counts, const std::string& what) {
  const auto pass = [&](Examples examples, Tape& tape) { forward_backward(examples, counts, tape); };
  throw_first_fault(processes_, model_.parameters, batch, pass, progress_.step, what);
}

// ---- Around the steps. ----

// The run's data; for a new run they must fit the checkpoint it starts from.
RunData Trainer::open_data(const fs::path& output) const {
  RunData data = open_run_data(config_.data, *model_.task);
  if (processes_.first() && !training_.init_from.empty() && !fs::exists(output / "last")) {
    require_vocabulary_of(training_.init_from, DataIdentity::of(data.train->info()));
  }
  require_position_rows(config_, data, *model_.task);
  return data;
}

// The vocabulary, if any, is given to the task and stored in every checkpoint, so that the model can be used without
// naming its vocabulary.
DataIdentity Trainer::take_vocabulary() {
  DataIdentity identity = DataIdentity::of(data_.train->info());
  model_files_ = files_to_keep(config_, *model_.task, identity);
  return identity;
}

// The first process reads; the others receive what it has read.
void Trainer::start_or_resume() {
  if (any_of(processes_, record_ && record_->has_checkpoint())) {
    const fs::path last = record_ ? record_->last() : fs::path();
    progress_ = load_run(last, {model_.parameters, optimizer_, memory_}, identity_, processes_);
    if (record_) {
      take_more_steps(last, config_, *data_.train, progress_);
      record_->take_up(progress_, model_.parameters);
    }
    log::info("going on at step {} of {}", progress_.step, plan_.total_steps);
  } else {
    model_.parameters.initialize(training_.seed);
    if (record_ && !training_.init_from.empty()) {
      init_from_checkpoint(training_.init_from, model_, training_.resize_relative);
    }
    share_parameters(processes_, model_.parameters);
  }
  model_.parameters.to(device_.device);
  if (record_) record_->start(with_absolute_paths(config_).to_json(), progress_.step);
  log_start();
}

void Trainer::log_start() const {
  log::info("{} examples, {} steps of {}, {:.2f} million weights, {} threads, {}", data_.train->size(),
            plan_.total_steps, batch_text(training_), static_cast<double>(model_.parameters.count()) / 1e6,
            thread_count(), device_.description);
  log_division(division_, divided_moments() != nullptr);
  log::info("residual scores: {}", residual_text(*config_.model));
  log_evaluation(data_, training_);
}

bool Trainer::finished() const {
  return progress_.step >= plan_.total_steps || stops_early(training_, progress_);
}

void Trainer::log_step(double norm, double rate) {
  const auto epoch = static_cast<double>(samples_) / static_cast<double>(data_.train->size());
  if (record_) {
    Metrics line = {{"loss", progress_.loss_sum / static_cast<double>(progress_.loss_steps)},
                    {"gradient_norm", norm},
                    {"learning_rate", rate},
                    {"epoch", epoch}};
    for (auto& speed : throughput_.per_second()) line.push_back(std::move(speed));
    line.emplace_back("peak_memory_bytes", static_cast<double>(measured_memory(device_.device).peak()));
    record_->add(progress_.step, "train", line);
  }
  progress_.loss_sum = 0;
  progress_.loss_steps = 0;
  throughput_.restart();
}

// The best checkpoint so far is chosen by the task's main metric; among equal ones the first stays.
void Trainer::evaluate() {
  require_sound_weights(model_.parameters, progress_.step);
  const auto predictions = record_ ? model_.task->start_predictions({}) : nullptr;
  const DatasetPass pass{data_.eval,  files_text(config_.data.eval),  "evaluate", kEvaluationTokens,
                         &processes_, examples_to_evaluate(training_)};
  // A run that is stopped here repeats the evaluation when it is resumed.
  if (!predict_dataset(model_, pass, predictions.get())) stop_on_signal();
  const Metrics result = share_metrics(processes_, predictions ? predictions->metrics() : Metrics());
  if (result.empty()) fail(files_text(config_.data.eval), "no example has a label: expected data with answers");
  progress_.evaluated_step = progress_.step;
  if (record_) record_->add(progress_.step, "eval", result);
  const bool better = is_better(result, progress_.best);
  log::info("step {}: {} {:.4f}{}", progress_.step, result.front().first, result.front().second,
            better ? ", the best so far" : "");
  throughput_.restart();
  if (!better) {
    progress_.stale_evaluations += 1;
    return;
  }
  progress_.best = result;
  progress_.best_step = progress_.step;
  progress_.stale_evaluations = 0;
  if (record_) record_->take_best(model_.parameters, progress_.step, card(result));
}

void Trainer::save() {
  if (!any_of(processes_, record_ && record_->wants_save(progress_))) return;
  require_sound_weights(model_.parameters, progress_.step);
  memory_.collect(processes_);
  std::map<std::string, Tensor> tensors = optimizer_.moments();
  tensors.merge(memory_.tensors());
  require_sound_tensors(processes_, tensors, progress_.step);
  if (record_) record_->save(model_.parameters, tensors, progress_, identity_);
}

// All processes stop when one was told to.
void Trainer::stop_on_signal() {
  std::string signal;
  for (const std::string& each : processes_.gather(StopSignal::requested() ? StopSignal::name() : "")) {
    if (signal.empty()) signal = each;
  }
  if (signal.empty()) return;
  save();
  if (!record_) throw Interrupted("train: " + signal);
  record_->require_stopped_sound(progress_, signal);
  throw Interrupted(
      fmt::format("train: {}: stopped at step {} of {}, everything is saved; to go on: etc train --resume {}", signal,
                  progress_.step, plan_.total_steps, record_->folder().string()));
}

}  // namespace

TrainReport train(const RunConfig& config, const fs::path& output, Communicator& processes) {
  const OpenedDevice device = prepare_machine(config.training);
  // The first process determines the meaning of `auto`; the devices of the others must support it.
  RunConfig settled = processes.first() ? settle_compute(config, device.device, output) : config;
  settled.training.compute = from_first(processes, settled.training.compute);
  if (!processes.first()) settled = settle_compute(settled, device.device, {});
  return Trainer(settled, device, output, processes).run();
}

}  // namespace etc
