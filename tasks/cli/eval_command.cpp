// etc eval: the task's metrics, from a model on prepared data or from a prediction file compared with gold answers.
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/base/parallel.h"
#include "etc_core/nn/backends.h"
#include "tasks/cli/command_paths.h"
#include "tasks/cli/commands.h"
#include "tasks/cli/config_options.h"
#include "tasks/cli/inference_options.h"
#include "tasks/cli/processes.h"
#include "tasks/output.h"
#include "tasks/registry.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/inference_fit.h"
#include "tasks/train/model_folder.h"
#include "tasks/train/released_model.h"
#include "tasks/train/stop_signal.h"

namespace etc::cli {

namespace {

struct EvalOptions : InferenceOptions {
  std::string model;
  std::vector<std::string> data;
  std::string output;
  std::string vocab;
  std::string predictions;
  std::string null_odds;
  std::string baseline;
  std::vector<std::string> gold;
  std::string task;
  bool json = false;
  GivenOptions given;  // decoding keys of section task
};

void check_paths(const EvalOptions& options) {
  CommandPaths paths("etc eval");
  paths.reads_model("--model", options.model);
  paths.reads("--data", options.data);
  paths.reads("--vocab", options.vocab);
  paths.reads("--predictions", options.predictions);
  paths.reads("--null-odds", options.null_odds);
  paths.reads("--baseline", options.baseline);
  paths.reads("--gold", options.gold);
  paths.writes_standard_output("the metrics");
  paths.writes_or_standard_output("--output", options.output);
  paths.writes("--trace", options.profile.trace);
  paths.check();
}

Metrics evaluate_model(const EvalOptions& options) {
  const Device device = open_device(options.device).device;
  const std::int64_t limit = take_memory_limit(options.memory_limit, device);
  const LoadedModel loaded = open_model(options.model, {options.vocab, options.given->value("task", Json::object())});
  TaskModel& model = *loaded.model;
  require_task("etc eval", options.task, model.task_section);
  refuse_unread_keys("etc eval", options.given->value("task", Json::object()), *model.task);
  const InferenceTypes types = chosen_types(options.compute, options.scores, device);
  const auto reader =
      open_dataset(options.data, model.task->schema(), {loaded.data.vocab_sha256, options.allow_incomplete});
  std::int64_t micro_batch_tokens = kEvaluationTokens;
  if (limit > 0) {
    InferenceFit fit("etc eval", limit, device, *model.config, types);
    micro_batch_tokens = fit.choose(*reader, kEvaluationTokens, [&](Examples examples) {
      return counted_prediction(model, types, examples, files_text(options.data));
    });
  }
  load_weights(options.model, model);
  model.parameters.to(device);
  release_kernels(model, types);
  const DatasetPass pass = agreed_pass({reader, files_text(options.data), "evaluate", micro_batch_tokens},
                                       model.parameters, model.task_section);
  const auto predictions = processes().first() ? model.task->start_predictions({options.output, {}, 0}) : nullptr;
  const StopSignal stop_signal;
  Profile profile(options.profile);
  if (!predict_dataset(model, pass, predictions.get())) {
    throw Interrupted("etc eval: stopped before the end; no result");
  }
  if (predictions != nullptr) {
    predictions->finish();
    log_peak_memory(device);
  }
  profile.finish();
  if (predictions == nullptr) return {};
  const Metrics metrics = predictions->metrics();
  if (metrics.empty()) fail(files_text(options.data), "no example has a label: nothing to compare with");
  return metrics;
}

std::string number_text(const Json& value) {
  return value.is_number_integer() ? json_line(value) : fmt::format("{:.6g}", value.get<double>());
}

// Further inputs for scoring a prediction file besides gold files, for example for translations.
ScoreOptions score_options(const EvalOptions& options, const TaskKind& kind) {
  ScoreOptions given{options.given->value("task", Json::object()), options.baseline};
  for (const auto& [name, value] : given.keys.items()) {
    const Field* key = kind.keys.find(name);
    if (key != nullptr && key->mark == kDecoding && kind.score_with != nullptr) continue;
    fail_usage("etc eval", "{} is no option of a prediction file of task {}", Field{.name = name}.option_name(),
               options.task);
  }
  if (!given.baseline.empty() && kind.score_with == nullptr) {
    fail_usage("etc eval", "--baseline: task {} compares no prediction files (translation does)", options.task);
  }
  return given;
}

Json scores_of(const EvalOptions& options, const TaskKind& kind) {
  const std::vector<std::filesystem::path> gold(options.gold.begin(), options.gold.end());
  if (!options.null_odds.empty() && kind.score_with_odds == nullptr)
    fail_usage("etc eval", "--null-odds: task {} has no null odds (squad has)", options.task);
  const ScoreOptions given = score_options(options, kind);
  if (kind.score_with != nullptr) return kind.score_with(options.predictions, gold, given);
  return options.null_odds.empty() ? kind.score(options.predictions, gold)
                                   : kind.score_with_odds(options.predictions, gold, options.null_odds);
}

// Prints the official scores of a prediction file: the metrics, then the counts and how they were made; tables go only
// to the output file.
void score_file(const EvalOptions& options) {
  if (options.task.empty()) fail_usage("etc eval", "--predictions needs --task, the task of the prediction file");
  const TaskKind& kind = task_kind(options.task);
  if (kind.score == nullptr) fail_usage("etc eval", "task {} has no prediction files to score", options.task);
  Json scores = scores_of(options, kind);
  scores["task"] = options.task;
  if (!options.output.empty()) write_file_atomically(options.output, json_text(scores));
  if (options.json) return print("{}\n", json_line(scores));
  for (const auto& [name, value] : scores.at("metrics").items()) {
    print("{} {}\n", name, number_text(value));
  }
  for (const auto& [name, value] : scores.items()) {
    if (value.is_number()) print("{} {}\n", name, number_text(value));
    if (value.is_string() && name != "task") print("{} {}\n", name, value.get<std::string>());
  }
}

void evaluate(const EvalOptions& options) {
  const bool from_model = !options.model.empty() && !options.data.empty();
  const bool from_file = !options.predictions.empty() && !options.gold.empty();
  if (from_model == from_file || options.model.empty() != options.data.empty() ||
      options.predictions.empty() != options.gold.empty()) {
    fail_usage("etc eval", "expected --model and --data, or --predictions and --gold");
  }
  check_paths(options);
  if (from_file) {
    if (!options.memory_limit.empty())
      fail_usage("etc eval", "--memory-limit goes with --model: a file is only scored");
    if (options.profile.wanted())
      fail_usage("etc eval", "--profile and --trace go with --model: a file is only scored");
    if (!options.vocab.empty()) fail_usage("etc eval", "--vocab goes with --model: a file is only scored");
    if (options.compute != kDefaultCompute || options.scores != kDefaultScores || options.device != kDefaultDevice)
      fail_usage("etc eval", "--compute, --scores and --device go with --model: a file is only scored");
    if (processes().first()) score_file(options);
    from_first(processes(), "");  // one process computes the scores
    return;
  }
  if (!options.null_odds.empty()) fail_usage("etc eval", "--null-odds goes with --predictions");
  if (!options.baseline.empty()) fail_usage("etc eval", "--baseline goes with --predictions");
  const Metrics metrics = evaluate_model(options);
  if (!options.json) {
    for (const auto& [name, value] : metrics) print("{} {:.6g}\n", name, value);
    return;
  }
  Json numbers = Json::object();
  for (const auto& [name, value] : metrics) numbers[name] = value;
  if (processes().first()) print("{}\n", json_line(Json{{"metrics", numbers}}));
}

}  // namespace

void add_eval_command(Program& program) {
  program.add("eval", "measure a model on prepared data, or a prediction file", [](const Command& command) {
    auto options = std::make_shared<EvalOptions>();
    command.option("--model", options->model, "model folder, or a run, whose best checkpoint is taken");
    command.option("--data", options->data, "prepared data, HDF5; several files are shards of one data set");
    command.option("--output", options->output,
                   "also write a file: a model's predictions; all scores of a prediction file, as JSON");
    command.option("--vocab", options->vocab, "the vocabulary of the data, where the model folder does not hold it");
    command.flag(
        "--json", options->json,
        "print the scores as one JSON object, in full: {\"metrics\": {name: number}}, and of a prediction file "
        "everything that --output writes");
    command.option("--predictions", options->predictions, "score this prediction file instead of a model");
    command.option("--null-odds", options->null_odds, "null odds beside the prediction file, for best thresholds");
    command.option("--baseline", options->baseline,
                   "task translation: another prediction file, compared by paired bootstrap");
    command.option("--gold", options->gold, "raw data with the answers the prediction file is compared with");
    command
        .option("--task", options->task,
                fmt::format("task of the prediction file, or the model's, to be checked: {}",
                            fmt::join(task_names(), ", ")))
        .one_of(task_names());
    add_inference_options(command, *options);
    options->given = add_config_options(command, [](const ConfigKey& key) { return key.decoding; });
    command.task_first(task_names());
    command.footer(
        "Examples:\n"
        "  etc eval --model run/best --data dev.h5\n"
        "  etc eval --task hotpotqa --predictions predictions.json --gold dev.json\n"
        "  etc eval --task nq --predictions predictions.json --gold dev-00.jsonl.gz dev-01.jsonl.gz --output "
        "scores.json\n"
        "  etc eval --task translation --predictions out.de --gold reference.de --baseline other.de");
    command.action([options] {
      if (options->threads > 0) set_thread_count(options->threads);
      if (!options->model.empty()) options->model = model_folder(options->model);
      evaluate(*options);
    });
  });
}

}  // namespace etc::cli
