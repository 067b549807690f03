// etc eval: the task's metrics, of a model over prepared data or of a prediction file over gold answers.
#include "etc_core/base/error.h"
#include "etc_core/base/parallel.h"
#include "tasks/cli/commands.h"
#include "tasks/cli/compute_option.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/stop_signal.h"

namespace etc::cli {

namespace {

struct EvalOptions {
  std::string model;
  std::vector<std::string> data;
  std::string output;
  std::string predictions;
  std::vector<std::string> gold;
  std::string task = task_kinds().front().name;
  std::string compute = kDefaultCompute;
  int threads = 0;
};

Metrics evaluate_model(const EvalOptions& options) {
  register_cpu_backend();
  const LoadedModel loaded = load_model(options.model);
  TaskModel& model = *loaded.model;
  model.encoder->release_kernels(chosen_compute(options.compute));
  const auto reader = open_dataset(options.data, model.task->schema(), loaded.data.vocab_sha256);
  const auto predictions = model.task->start_predictions(options.output);
  const StopSignal listening;
  if (!predict_dataset(model, reader, files_text(options.data), "evaluate", *predictions)) {
    throw Interrupted("etc eval: stopped before the end; no result");
  }
  predictions->finish();
  const Metrics metrics = predictions->metrics();
  if (metrics.empty()) fail(files_text(options.data), "no example has a label: nothing to compare with");
  return metrics;
}

Metrics evaluate(const EvalOptions& options) {
  const bool from_model = !options.model.empty() && !options.data.empty();
  const bool from_file = !options.predictions.empty() && !options.gold.empty();
  if (from_model == from_file || options.model.empty() != options.data.empty() ||
      options.predictions.empty() != options.gold.empty()) {
    fail_usage("etc eval", "expected --model and --data, or --predictions and --gold");
  }
  if (from_model) return evaluate_model(options);
  return task_kind(options.task).score(options.predictions, {options.gold.begin(), options.gold.end()});
}

}  // namespace

void add_eval_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("eval", "measure a model on prepared data, or a prediction file");
  auto options = std::make_shared<EvalOptions>();
  command->add_option("--model", options->model, "checkpoint folder of a trained model");
  command->add_option("--data", options->data, "prepared data, HDF5; several files are shards of one data set");
  command->add_option("--output", options->output, "also write the predictions to this file");
  command->add_option("--predictions", options->predictions, "score this prediction file instead of a model");
  command->add_option("--gold", options->gold, "raw data with the answers the prediction file is compared with");
  command->add_option("--task", options->task, "task of the prediction file [" + options->task + "]");
  add_compute_option(*command, options->compute);
  command->add_option("--threads", options->threads, "threads to compute with [all processors]")
      ->check(CLI::PositiveNumber);
  command->footer(
      "Examples:\n"
      "  etc eval --model run/best --data dev.h5\n"
      "  etc eval --predictions predictions.json --gold dev.json");
  command->callback([options] {
    if (options->threads > 0) set_thread_count(options->threads);
    for (const auto& [name, value] : evaluate(*options)) std::printf("%s %.6g\n", name.c_str(), value);
  });
}

}  // namespace etc::cli
