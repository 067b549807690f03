// etc predict: the prediction file of prepared or raw data.
#include <algorithm>
#include <optional>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/log.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/progress.h"
#include "etc_core/checkpoint/convert/pickle/zip_writer.h"
#include "etc_core/nn/backends.h"
#include "tasks/cli/command_paths.h"
#include "tasks/cli/commands.h"
#include "tasks/cli/config_options.h"
#include "tasks/cli/inference_options.h"
#include "tasks/cli/processes.h"
#include "tasks/output.h"
#include "tasks/prepare/file_pass.h"
#include "tasks/registry.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/inference_fit.h"
#include "tasks/train/stop_signal.h"

namespace etc::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kWhere = "etc predict";

struct PredictOptions : InferenceOptions {
  std::string model;
  std::vector<std::string> data;
  std::string input;
  std::string vocab;
  std::string splitter;
  std::string output;
  std::string n_best_output;
  std::int64_t n_best = 10;
  std::string null_odds_output;
  std::string submission;
  std::int64_t show = 0;
  GivenOptions given;  // decoding keys of section task
};

void check_paths(const PredictOptions& options) {
  CommandPaths paths(kWhere);
  paths.reads_folder("--model", options.model);
  paths.reads("--data", options.data);
  paths.reads_or_standard_input("--input", options.input);
  paths.reads("--vocab", options.vocab);
  paths.reads_splitter("--splitter", options.splitter);
  if (options.show > 0) paths.writes_standard_output("--show");
  paths.writes_or_standard_output("--output", options.output);
  paths.writes_or_standard_output("--n-best-output", options.n_best_output);
  paths.writes_or_standard_output("--null-odds-output", options.null_odds_output);
  paths.writes("--submission", options.submission);
  paths.writes("--trace", options.profile.trace);
  paths.check();
}

[[noreturn]] void stopped() {
  throw Interrupted(std::string(kWhere) + ": stopped before the end; no prediction file was written");
}

// Raw records prepared exactly as the model's training data were.
std::unique_ptr<prepare::Preparation> make_preparation(const PredictOptions& options, const LoadedModel& loaded) {
  if (loaded.vocab.empty()) {
    fail_usage(kWhere, "--input needs --vocab: the model was trained without, so its folder holds no vocabulary");
  }
  const auto& kind = preparation_kind(task_name(loaded.model->task_section));
  Json settings = with_overrides(kind, kind.settings.defaults(), loaded.data.preprocess_config, options.model);
  if (!options.splitter.empty()) settings["splitter"] = options.splitter;
  if (settings.contains("is_training")) settings["is_training"] = false;  // every record is to be predicted
  auto preparation = kind.make(settings, loaded.vocab, prepare::Labels::optional);
  if (preparation->vocab_sha256() != loaded.data.vocab_sha256) {
    fail(loaded.vocab.string(), "another vocabulary than the model's: expected SHA-256 {}, got {}",
         loaded.data.vocab_sha256, preparation->vocab_sha256());
  }
  const Json prepared = preparation->preprocess_config();
  for (const auto& [key, value] : prepared.items()) {
    if (key == "is_training") continue;
    const Json expected = loaded.data.preprocess_config.value(key, Json());
    if (value != expected) {
      fail(kWhere, "{}: the model's data were prepared with {}, got {}", key, json_line(expected), json_line(value));
    }
  }
  return preparation;
}

// Where and how a model predicts.
struct Running {
  TaskModel& model;
  ComputeType compute;
  const InferenceFit* fit;          // null: as much memory as it takes
  std::int64_t micro_batch_tokens;  // at most
};

// Predicts records as they are read: examples wait until a micro-batch is full or a window of the file is done.
class RawPredictor {
 public:
  RawPredictor(const Running& running, Predictions& predictions, std::string where)
      : running_(running), model_(running.model), predictions_(predictions), where_(std::move(where)) {}

  void take(prepare::PassRecord&& record) {
    const prepare::FaultList& faults = record.converted.faults;
    for (const data::Fault& fault : faults.rows()) {
      if (fault.severity == data::Severity::warn) continue;
      log::warn("{}: record {} {}: {} {}: {}", where_, record.index, record.converted.id, fault.field, fault.code,
                fault.message);
    }
    if (faults.rejected() || faults.dropped()) {
      ++refused_;
      data::Fault fault;
      fault.id = record.converted.id;
      refused_records_.push_back(fault);
      return;
    }
    if (record.converted.gold) predictions_.add_gold(*record.converted.gold);
    for (data::Example& example : record.converted.examples) {
      waiting_.push_back({record.index, static_cast<std::int64_t>(done_ + waiting_.size()), std::move(example)});
    }
  }

  // Called outside of parallel loops, so that the model has all threads.
  void flush() {
    std::size_t first = 0;
    while (first < waiting_.size()) {
      if (StopSignal::requested()) stopped();
      const std::size_t end = end_of_micro_batch(first);
      predict_examples(model_, Examples(waiting_).subspan(first, end - first), where_, predictions_);
      done_ += end - first;
      first = end;
    }
    waiting_.clear();
    for (const data::Fault& fault : refused_records_) predictions_.add_rejected(fault);
    refused_records_.clear();
  }

  std::size_t done() const { return done_; }
  std::size_t refused() const { return refused_; }

 private:
  // As many of the waiting examples as fit, from `first` on.
  std::size_t end_of_micro_batch(std::size_t first) {
    const data::Schema& schema = model_.task->schema();
    while (true) {
      std::size_t end = first;
      for (std::int64_t tokens = 0; end < waiting_.size(); ++end) {
        tokens += tokens_of(waiting_[end].features, schema);
        if (end > first && tokens > running_.micro_batch_tokens) break;
      }
      if (running_.fit == nullptr) return end;
      const Examples examples = Examples(waiting_).subspan(first, end - first);
      const CountedCall call = counted_prediction(model_, running_.compute, examples, where_);
      if (running_.fit->fits(call)) return end;
      if (examples.size() == 1) refuse(examples, call);
      running_.micro_batch_tokens = std::max<std::int64_t>(1, running_.micro_batch_tokens / 2);
    }
  }

  [[noreturn]] void refuse(Examples example, const CountedCall& call) const {
    const EncoderInput input = model_.task->feed(example, where_);
    running_.fit->refuse(fmt::format("{}: record {}", where_, example.front().index), input.long_tokens(),
                         input.global_tokens(), call);
  }

  Running running_;
  TaskModel& model_;
  Predictions& predictions_;
  std::string where_;
  std::vector<data::LoadedExample> waiting_;
  std::vector<data::Fault> refused_records_;
  std::size_t done_ = 0, refused_ = 0;
};

// What reading and preparing raw records takes: two windows of the file as text, values and examples (data/README.md).
std::int64_t bytes_of_reading(const std::string& input) {
  constexpr std::int64_t kMost = 32'000'000, kLeast = 4'000'000, kTimes = 6;
  std::error_code unknown;  // of standard input
  const std::uintmax_t size = fs::file_size(input, unknown);
  return unknown || size > kMost / kTimes ? kMost : std::max(kLeast, kTimes * static_cast<std::int64_t>(size));
}

// Records without a prediction.
std::size_t predict_raw(const PredictOptions& options, const Running& running, const prepare::Preparation& preparation,
                        Predictions& predictions) {
  const std::string where = data::raw_file_text(options.input);
  RawPredictor predictor(running, predictions, where);
  Progress progress("predict", 0, "examples");
  prepare::PassCallbacks callbacks;
  callbacks.record = [&](prepare::PassRecord&& record) { predictor.take(std::move(record)); };
  callbacks.progress = [&](std::int64_t) {
    predictor.flush();
    progress.update(static_cast<std::int64_t>(predictor.done()));
  };
  const prepare::PassEnd end = pass_over_file(preparation, options.input, callbacks);
  if (end.fault) fail(where, "{}: {}", end.fault->code(), end.fault->what());
  return predictor.refused();
}

// One example with its prediction on standard output.
void show_example(TaskModel& model, const data::RecordSlice& record, data::LoadedExample example,
                  const std::string& where) {
  const std::vector<data::LoadedExample> alone = {std::move(example)};
  EncoderInput input = model.task->feed(alone, where);
  Tape tape(Recording::off);
  const HeadOutput logits = model.forward(tape, alone, input, ForwardOptions{});
  print("{}\n", model.task->show(record, alone[0].features, logits));
}

// The first of the prepared examples.
void show_examples(const PredictOptions& options, TaskModel& model, const data::DatasetReader& reader) {
  for (std::int64_t i = 0; i < std::min(options.show, reader.size()); ++i) {
    show_example(model, {}, {i, i, reader.read(i)}, files_text(options.data));
  }
}

// The first records of the file, each with its prediction, on standard output.
void show_records(const PredictOptions& options, TaskModel& model, const prepare::Preparation& preparation) {
  data::ByteStream stream(options.input);
  const auto reader = preparation.open_records(stream);
  data::RecordSlice record;
  for (std::int64_t shown = 0; shown < options.show && reader->next(record);) {
    data::RecordSlice copy = record;  // converting uses it up
    prepare::Converted converted = preparation.convert_record(copy);
    if (converted.faults.rejected() || converted.faults.dropped()) continue;
    for (data::Example& example : converted.examples) {
      show_example(model, record, {record.index, 0, std::move(example)}, options.input);
    }
    ++shown;
  }
}

void finish(Predictions& predictions) {
  predictions.finish();
  for (const auto& [name, value] : predictions.metrics()) log::info("{} {:.6g}", name, value);
}

bool writes_files(const PredictOptions& options) {
  return !options.output.empty() || !options.n_best_output.empty() || !options.null_odds_output.empty();
}

// Throws UsageError on options that do not go together.
void check_options(const PredictOptions& options) {
  if (options.data.empty() == options.input.empty()) fail_usage(kWhere, "expected either --data or --input");
  if (options.show > 0 && options.input == data::kStandardInput)
    fail_usage(kWhere, "--show needs a file, not standard input");
  if (!options.input.empty()) require_one_process(kWhere, "--input");
  if (options.show == 0 && !writes_files(options)) {
    fail_usage(kWhere, "expected --output FILE (- for standard output)");
  }
  check_paths(options);
}

// The prediction file beside those that the zip file has already, in the place of an earlier one of its name.
void add_to_submission(const PredictOptions& options, const std::string& name) {
  const fs::path zip = options.submission;
  convert::ZipContents files = fs::exists(zip) ? convert::read_zip(zip) : convert::ZipContents();
  files[name] = read_file(options.output);
  convert::write_stored_zip(zip, files);
  log::info("{}: {} of {} files is new", options.submission, name, files.size());
}

void check_submission(const PredictOptions& options, const Task& task) {
  if (options.submission.empty()) return;
  if (options.output.empty() || options.output == "-") fail_usage(kWhere, "--submission needs --output FILE");
  if (task.submission_name().empty()) {
    fail_usage(kWhere, "--submission: this task's benchmark takes no zip file of predictions (glue's does)");
  }
}

// Throws UsageError where the task cannot show or predict what is given.
void check_show(const PredictOptions& options, const Task& task) {
  if (!task.takes_whole_texts() && options.input.empty() && options.show > 0)
    fail_usage(kWhere, "--show needs --input: prepared data hold no text");
  if (task.takes_whole_texts() && !options.input.empty()) {
    fail_usage(kWhere, "--input: this task's examples are made of whole texts, expected --data (etc prepare makes it)");
  }
}

void run_predict(const PredictOptions& options) {
  check_options(options);
  const bool raw = !options.input.empty();
  if (options.threads > 0) set_thread_count(options.threads);
  const Device device = open_device(options.device).device;
  const std::int64_t limit = take_memory_limit(options.memory_limit, device);
  const LoadedModel loaded = open_model(options.model, {options.vocab, options.given->value("task", Json::object())});
  TaskModel& model = *loaded.model;
  check_submission(options, *model.task);
  check_show(options, *model.task);
  if (!options.null_odds_output.empty() && !model.task->writes_null_odds())
    fail_usage(kWhere, "--null-odds-output: this task's answers have no null odds (squad with version_2 has)");
  const auto preparation = raw ? make_preparation(options, loaded) : nullptr;
  std::shared_ptr<const data::DatasetReader> reader;
  if (!raw)
    reader = open_dataset(options.data, model.task->schema(), {loaded.data.vocab_sha256, options.allow_incomplete});
  Running running{model, chosen_compute(options.compute, device), nullptr, kEvaluationTokens};
  std::optional<InferenceFit> fit;
  if (limit > 0) {
    fit.emplace(kWhere, limit, device, *model.config, running.compute);
    if (raw) fit->hold(bytes_of_reading(options.input));
    if (reader) {
      running.micro_batch_tokens = fit->choose(*reader, kEvaluationTokens, [&](Examples examples) {
        return counted_prediction(model, running.compute, examples, files_text(options.data));
      });
    }
    running.fit = &*fit;
  }
  load_weights(options.model, model);
  model.parameters.to(device);
  model.encoder->release_kernels(running.compute);
  const StopSignal listening;
  Profile profile(options.profile);
  std::size_t refused = 0;
  if (writes_files(options)) {
    const PredictionRequest request{options.output, options.n_best_output, options.n_best, options.null_odds_output};
    const auto predictions = processes().first() ? model.task->start_predictions(request) : nullptr;
    if (raw) {
      refused = predict_raw(options, running, *preparation, *predictions);
    } else {
      const DatasetPass pass{reader, files_text(options.data), "predict", running.micro_batch_tokens};
      const DatasetPass agreed = agreed_pass(pass, model.parameters, model.task_section);
      if (!predict_dataset(model, agreed, predictions.get())) stopped();
    }
    if (predictions) {
      finish(*predictions);
      if (!options.submission.empty()) add_to_submission(options, model.task->submission_name());
    }
  }
  if (options.show > 0 && raw) show_records(options, model, *preparation);
  if (options.show > 0 && !raw && processes().first()) show_examples(options, model, *reader);
  profile.finish();
  log_peak_memory(device);
  if (refused > 0) {
    log::warn("{}: {} records have no prediction (see above)", kWhere, refused);
    throw ExitCode(1);
  }
}

}  // namespace

void add_predict_command(Program& program) {
  const Command command = program.add("predict", "predict answers for prepared or raw data");
  auto options = std::make_shared<PredictOptions>();
  command.option("--model", options->model, "checkpoint folder of a trained model").required();
  command.option("--data", options->data, "prepared data, HDF5; several files are shards of one data set");
  command.option("--input", options->input, "raw data instead: a JSON file, or - for standard input");
  command.option("--vocab", options->vocab, "the vocabulary of the model's data, where its folder does not hold it");
  command.option("--splitter", options->splitter, "for raw data: punkt:DIR when the model's data used Punkt");
  command.option("--output", options->output, "prediction file to write; -: standard output");
  command.option("--n-best-output", options->n_best_output, "also write several answers of each example, JSON lines");
  command.option("--n-best", options->n_best, "so many [10]").at_least(1);
  command.option("--null-odds-output", options->null_odds_output,
                 "also write how much more \"no answer\" scores than the best one (squad with version_2)");
  command.option("--submission", options->submission,
                 "also put the prediction file into this zip file under its benchmark's name, beside others (glue)");
  command.option("--show", options->show, "print the predictions of the first records in their documents").at_least(0);
  add_inference_options(command, *options);
  options->given = add_config_options(command, [](const ConfigKey& key) { return key.decoding; });
  command.footer(
      "Examples:\n"
      "  etc predict --model run/best --data dev.h5 --output predictions.json\n"
      "  etc predict --model run/best --data dev.h5 --n-best 5 --n-best-output answers.jsonl\n"
      "  etc predict --model run/best --input dev.json --vocab vocab.txt --output predictions.json\n"
      "  gunzip -c dev.json.gz | etc predict --model run/best --input - --vocab vocab.txt --output -\n"
      "  etc predict --model run/best --input dev.json --vocab vocab.txt --show 3");
  command.action([options] { run_predict(*options); });
}

}  // namespace etc::cli
