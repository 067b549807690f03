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
#include "tasks/inference/raw_predictor.h"
#include "tasks/inference/raw_preparation.h"
#include "tasks/output.h"
#include "tasks/prepare/run_inputs.h"
#include "tasks/registry.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/inference_fit.h"
#include "tasks/train/model_folder.h"
#include "tasks/train/released_model.h"
#include "tasks/train/stop_signal.h"

namespace etc::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kWhere = "etc predict";
constexpr const char* kStopped = "etc predict: stopped before the end; no prediction file was written";

struct PredictOptions : InferenceOptions {
  std::string model;
  std::string task;
  std::vector<std::string> data;
  std::vector<std::string> input;
  std::string answers;
  std::string vocab;
  std::string splitter;
  std::string output;
  std::string n_best_output;
  std::int64_t n_best = 0;  // 0: not given
  std::string null_odds_output;
  std::string submission;
  std::int64_t show = 0;
  GivenOptions given;  // decoding keys of section task
};

void check_paths(const PredictOptions& options) {
  CommandPaths paths(kWhere);
  paths.reads_model("--model", options.model);
  paths.reads("--data", options.data);
  for (const std::string& input : options.input) paths.reads_or_standard_input("--input", input);
  paths.reads("--vocab", options.vocab);
  paths.reads_splitter("--splitter", options.splitter);
  if (options.show > 0) paths.writes_standard_output("--show");
  paths.writes_or_standard_output("--answers", options.answers);
  paths.writes_or_standard_output("--output", options.output);
  paths.writes_or_standard_output("--n-best-output", options.n_best_output);
  paths.writes_or_standard_output("--null-odds-output", options.null_odds_output);
  paths.writes("--submission", options.submission);
  paths.writes("--trace", options.profile.trace);
  paths.check();
}

// Predicts the files in order and shows the progress: in bytes, from which the time left is known, or in examples if the
// input can be read only once.
void predict_files(const std::vector<std::string>& inputs, RawPredictor& predictor) {
  const std::int64_t all = prepare::readable_bytes({inputs.begin(), inputs.end()});
  const auto [unit, unit_name] = prepare::progress_unit(all);
  Progress progress("predict", all / unit, all > 0 ? unit_name : "examples");
  std::int64_t before = 0;  // bytes of the files before
  for (const std::string& input : inputs) {
    predictor.predict(input, [&](std::int64_t examples, std::int64_t file_bytes) {
      if (all == 0) return progress.update(examples);
      progress.update((before + file_bytes) / unit, fmt::format("{} examples", examples));
    });
    if (all > 0) before += static_cast<std::int64_t>(fs::file_size(input));
  }
}

// Returns the number of records without a prediction. predictions: null if answers are wanted, and in all processes but
// the first.
std::int64_t predict_raw(const PredictOptions& options, const Running& running, const prepare::Preparation& preparation,
                         Predictions* predictions) {
  const bool first = processes().first();
  PredictionSink sink{predictions, nullptr};
  std::optional<Output> answers;
  if (!options.answers.empty()) {
    if (first) answers.emplace(options.answers);
    sink.answers = [&](const std::string& line) { answers->write(line + "\n"); };
  }
  RawPredictor predictor(running, preparation, sink, kStopped, processes());
  require_equal_models(running.model.parameters, running.model.task_section);
  if (!first) {
    predictor.help();
    return 0;
  }
  predict_files(options.input, predictor);
  predictor.finish();
  if (answers) answers->finish();
  return predictor.refused();
}

// Prints one example with its prediction on standard output.
void show_example(TaskModel& model, const data::RecordSlice& record, data::LoadedExample example,
                  const std::string& where) {
  const std::vector<data::LoadedExample> alone = {std::move(example)};
  EncoderInput input = model.task->feed(alone, where);
  Tape tape(Recording::off);
  const HeadOutput logits = model.forward(tape, alone, input, ForwardOptions{});
  print("{}\n", model.task->show(record, alone[0].features, logits));
}

// Prints the first prepared examples.
void show_examples(const PredictOptions& options, TaskModel& model, const data::DatasetReader& reader) {
  for (std::int64_t i = 0; i < std::min(options.show, reader.size()); ++i) {
    show_example(model, {}, {i, i, reader.read(i)}, files_text(options.data));
  }
}

// Prints the first records of the files, each with its prediction, on standard output. Returns how many records before
// the last one shown have no prediction.
std::int64_t show_records(const PredictOptions& options, TaskModel& model, const prepare::Preparation& preparation) {
  std::int64_t shown = 0, refused = 0;
  for (const std::string& input : options.input) {
    const std::string where = data::raw_file_text(input);
    try {
      data::ByteStream stream(input);
      const auto reader = preparation.open_records(stream);
      data::RecordSlice record;
      while (shown < options.show && reader->next(record)) {
        data::RecordSlice copy = record;  // conversion consumes it
        prepare::Converted converted = prepare::converted_or_rejected(preparation, copy);
        if (converted.faults.rejected() || converted.faults.dropped()) {
          log_faults(where, record.index, converted);
          ++refused;
          continue;
        }
        for (data::Example& example : converted.examples) {
          show_example(model, record, {record.index, 0, std::move(example)}, where);
        }
        ++shown;
      }
    } catch (const data::InputFault& fault) {
      fail(where, "{}: {}", fault.code(), fault.what());
    }
  }
  return refused;
}

void finish(Predictions& predictions) {
  predictions.finish();
  for (const auto& [name, value] : predictions.metrics()) log::info("{} {:.6g}", name, value);
}

bool writes_files(const PredictOptions& options) {
  return !options.output.empty() || !options.n_best_output.empty() || !options.null_odds_output.empty();
}

// Throws UsageError for invalid combinations of options.
void check_options(const PredictOptions& options) {
  if (options.data.empty() == options.input.empty()) fail_usage(kWhere, "expected either --data or --input");
  const auto standard = std::count(options.input.begin(), options.input.end(), data::kStandardInput);
  if (standard > 1) fail_usage(kWhere, "--input: expected - (standard input) once at most, got it {} times", standard);
  if (options.show > 0 && standard > 0) fail_usage(kWhere, "--show needs a file, not standard input");
  if (!options.answers.empty() && options.input.empty()) fail_usage(kWhere, "--answers needs --input");
  if (!options.answers.empty() && writes_files(options)) {
    fail_usage(kWhere, "--answers goes without --output, --n-best-output and --null-odds-output: run it on its own");
  }
  if (options.n_best > 0 && options.n_best_output.empty())
    fail_usage(kWhere, "--n-best: expected --n-best-output FILE beside it, where several answers are written");
  if (!options.splitter.empty() && options.input.empty())
    fail_usage(kWhere, "--splitter goes with --input: prepared data are cut already");
  if (options.allow_incomplete && options.data.empty())
    fail_usage(kWhere, "--allow-incomplete goes with --data: prepared data say whether they are complete");
  if (options.show == 0 && !writes_files(options) && options.answers.empty()) {
    fail_usage(kWhere, "expected --output FILE (- for standard output)");
  }
  check_paths(options);
}

// Adds the prediction file to the zip file, keeping its other files and replacing an earlier one of the same name.
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

// Throws UsageError if the task cannot show or predict the given input.
void check_show(const PredictOptions& options, const Task& task) {
  if (options.show > 0 && !task.no_show().empty()) fail_usage(kWhere, "--show: {}", task.no_show());
  if (!task.takes_whole_texts() && options.input.empty() && options.show > 0)
    fail_usage(kWhere, "--show needs --input: prepared data hold no text");
  if (task.takes_whole_texts() && !options.input.empty()) {
    fail_usage(kWhere, "--input: this task's examples are made of whole texts, expected --data (etc prepare makes it)");
  }
}

// Throws Error or UsageError if the model's task is another one, or cannot do what the options ask for.
void check_task(const PredictOptions& options, const TaskModel& model) {
  require_task(kWhere, options.task, model.task_section);
  refuse_unread_keys(kWhere, options.given->value("task", Json::object()), *model.task);
  check_submission(options, *model.task);
  check_show(options, *model.task);
  if (!options.null_odds_output.empty() && !model.task->writes_null_odds())
    fail_usage(kWhere, "--null-odds-output: this task's answers have no null odds (squad with version_2 has)");
  if (!options.answers.empty()) require_answers(*model.task, task_name(model.task_section), kWhere);
}

// What is predicted: prepared data, or raw data and how they are prepared; the other one is null.
struct PredictInput {
  std::shared_ptr<const data::DatasetReader> reader;
  std::unique_ptr<const prepare::Preparation> preparation;
};

// Chooses the size of a micro-batch of prepared data, so that the run keeps the limit.
void fit_to_limit(const PredictOptions& options, const PredictInput& input, Running& running, InferenceFit& fit) {
  if (input.preparation) fit.hold(bytes_of_reading(options.input));
  if (input.reader) {
    running.micro_batch_tokens = fit.choose(*input.reader, kEvaluationTokens, [&](Examples examples) {
      return counted_prediction(running.model, running.types, examples, files_text(options.data));
    });
  }
  running.fit = &fit;
}

// Writes the prediction files that the options name. Returns the number of records without a prediction.
std::int64_t write_predictions(const PredictOptions& options, const PredictInput& input, const Running& running) {
  TaskModel& model = running.model;
  const PredictionRequest request{options.output, options.n_best_output, options.n_best, options.null_odds_output};
  const auto predictions = processes().first() ? model.task->start_predictions(request) : nullptr;
  std::int64_t refused = 0;
  if (input.preparation) {
    refused = predict_raw(options, running, *input.preparation, predictions.get());
  } else {
    const DatasetPass pass{input.reader, files_text(options.data), "predict", running.micro_batch_tokens};
    const DatasetPass agreed = agreed_pass(pass, model.parameters, model.task_section);
    if (!predict_dataset(model, agreed, predictions.get())) throw Interrupted(kStopped);
  }
  if (predictions) {
    finish(*predictions);
    if (!options.submission.empty()) add_to_submission(options, model.task->submission_name());
  }
  return refused;
}

void run_predict(const PredictOptions& options) {
  check_options(options);
  if (options.threads > 0) set_thread_count(options.threads);
  const Device device = open_device(options.device).device;
  const std::int64_t limit = take_memory_limit(options.memory_limit, device);
  const LoadedModel loaded = open_model(options.model, {options.vocab, options.given->value("task", Json::object())});
  TaskModel& model = *loaded.model;
  check_task(options, model);
  PredictInput input;
  if (!options.input.empty()) {
    input.preparation = make_raw_preparation(kWhere, loaded, options.model, options.splitter);
  } else {
    input.reader =
        open_dataset(options.data, model.task->schema(), {loaded.data.vocab_sha256, options.allow_incomplete});
  }
  Running running{model, chosen_types(options.compute, options.scores, device), nullptr, kEvaluationTokens};
  std::optional<InferenceFit> fit;
  if (limit > 0) {
    fit.emplace(kWhere, limit, device, *model.config, running.types);
    fit_to_limit(options, input, running, *fit);
  }
  load_weights(options.model, model);
  model.parameters.to(device);
  release_kernels(model, running.types);
  const StopSignal stop_signal;
  Profile profile(options.profile);
  std::int64_t refused = 0;
  if (!options.answers.empty()) refused = predict_raw(options, running, *input.preparation, nullptr);
  if (writes_files(options)) refused = write_predictions(options, input, running);
  if (options.show > 0 && processes().first()) {
    if (input.preparation) refused = std::max(refused, show_records(options, model, *input.preparation));
    if (input.reader) show_examples(options, model, *input.reader);
  }
  log_peak_memory(device);
  profile.finish();
  if (refused > 0) {
    log::warn("{}: {} records have no prediction (see above)", kWhere, refused);
    throw ExitCode(1);
  }
}

}  // namespace

void add_predict_command(Program& program) {
  program.add("predict", "predict answers for prepared or raw data", [](const Command& command) {
    auto options = std::make_shared<PredictOptions>();
    command.option("--model", options->model, "model folder, or a run, whose best checkpoint is taken").required();
    command.option("--task", options->task, "the model's task, to be checked").one_of(task_names());
    command.option("--data", options->data, "prepared data, HDF5; several files are shards of one data set");
    command.option(
        "--input", options->input,
        "raw data instead: JSON files (an array, lines, or one record), plain or gzip, in this order; -: standard "
        "input, a record at a time");
    command.option("--answers", options->answers,
                   "instead of --output: an answer to each record of --input as soon as it is known, JSON lines "
                   "(tasks/ANSWERS.md); -: standard output, the default if no other output is given");
    command.option("--vocab", options->vocab, "the vocabulary of the model's data, if its folder does not hold it");
    command.option("--splitter", options->splitter,
                   "for raw data: punkt:DIR when the model's data used Punkt and its folder holds no tables");
    command.option("--output", options->output, "prediction file to write; -: standard output");
    command.option("--n-best-output", options->n_best_output,
                   "also write several answers of each example: JSON lines, of SQuAD one object");
    command.option("--n-best", options->n_best, "answers per example in --n-best-output [10; of SQuAD all]")
        .at_least(1);
    command.option("--null-odds-output", options->null_odds_output,
                   "also write how much more \"no answer\" scores than the best one (squad with version_2)");
    command.option("--submission", options->submission,
                   "also add the prediction file to this zip file under its benchmark's name (glue)");
    command.option("--show", options->show, "print the predictions of the first records in their documents")
        .at_least(0);
    add_inference_options(command, *options);
    options->given = add_config_options(command, [](const ConfigKey& key) { return key.decoding; });
    command.task_first(task_names());
    command.footer(
        "Examples:\n"
        "  etc predict --model run/best --data dev.h5 --output predictions.json\n"
        "  etc predict --model run/best --data dev.h5 --n-best 5 --n-best-output answers.jsonl\n"
        "  etc predict --model run/best --input dev.json --vocab vocab.txt --output predictions.json\n"
        "  gunzip -c dev.json.gz | etc predict --model run/best --input -\n"
        "  etc predict --model run/best --input dev.json --vocab vocab.txt --show 3");
    command.action([options] {
      const bool wanted = options->show > 0 || writes_files(*options);
      if (!wanted && !options->input.empty() && options->answers.empty()) options->answers = data::kStandardInput;
      options->model = model_folder(options->model);
      run_predict(*options);
    });
  });
}

}  // namespace etc::cli
