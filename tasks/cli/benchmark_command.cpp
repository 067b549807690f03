// etc benchmark: time, speed and memory against the sequence length.
#include <algorithm>
#include <optional>

#include "etc_core/base/error.h"
#include "etc_core/base/interruption.h"
#include "etc_core/base/json.h"
#include "etc_core/base/log.h"
#include "etc_core/base/parallel.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/etc_encoder.h"
#include "tasks/cli/command_paths.h"
#include "tasks/cli/commands.h"
#include "tasks/cli/compute_option.h"
#include "tasks/cli/device_option.h"
#include "tasks/cli/length_sweep.h"
#include "tasks/cli/memory_option.h"
#include "tasks/cli/processes.h"
#include "tasks/cli/profile_option.h"
#include "tasks/cli/sweep_files.h"
#include "tasks/cli/threads_option.h"
#include "tasks/output.h"
#include "tasks/train/stop_signal.h"

namespace etc::cli {

namespace {

constexpr std::int64_t kVocabulary = 30522;  // BERT's; only the embedding table's size depends on it

// The labels of longer examples exceed any memory, and the forecast's own structures a usual machine's.
constexpr std::int64_t kLongestExample = 1 << 26;

struct BenchmarkOptions {
  std::vector<std::int64_t> lengths = {512, 1024, 2048, 4096};
  std::vector<std::string> residual = {"off", "sum"};
  std::string mode = "infer";
  std::vector<std::string> compute = {"fp32"};
  std::string scores = kDefaultScores;
  std::string preset = "base";
  std::string config;
  std::string output;
  bool overwrite = false;
  std::int64_t tokens_per_global = 16;
  std::int64_t repeats = 3;
  int threads = 0;
  bool forecast = false;
  std::string memory_limit;
  std::string device = kDefaultDevice;
  ProfileOption profile;
};

// The lengths for which the model has positions. Others are left out with a log message; at least one must remain.
std::vector<std::int64_t> lengths_within(const EncoderConfig& model, const std::vector<std::int64_t>& lengths) {
  const std::int64_t positions = model.max_absolute_position_embeddings;
  if (positions == 0) return lengths;  // any length is valid
  std::vector<std::int64_t> within, beyond;
  for (const std::int64_t length : lengths) (length <= positions ? within : beyond).push_back(length);
  if (within.empty()) {
    fail_usage("etc benchmark", "--lengths: expected one of at most max_absolute_position_embeddings={}, got {}",
               positions, fmt::join(lengths, ","));
  }
  if (!beyond.empty()) {
    log::info("--lengths {}: left out: beyond the model's max_absolute_position_embeddings={}", fmt::join(beyond, ","),
              positions);
  }
  return within;
}

// The kinds of scores that the model supports. An unsupported kind is an error if it was named by the user, reported
// before anything is computed; from the default it is left out with a log message.
std::vector<std::string> taken_scores(const ModelConfig& model, const std::vector<std::string>& kinds, bool named) {
  std::vector<std::string> taken;
  for (const std::string& kind : kinds) {
    try {
      model_with_scores(model, kind)->validate();
      taken.push_back(kind);
    } catch (const UsageError& error) {
      if (named) fail_usage("etc benchmark", "--residual {}: {}", kind, error.what());
      log::info("--residual {}: left out: {}", kind, error.what());
    }
  }
  return taken;
}

// scores_named: --residual was given.
SweepOptions sweep_options(const BenchmarkOptions& options, bool scores_named) {
  SweepOptions sweep;
  if (options.config.empty()) {
    sweep.model = model_preset(options.preset);
  } else {
    const Json config = read_json_file(options.config);
    if (!config.is_object() || !config.contains("model")) fail_usage(options.config, "expected a section model");
    sweep.model = model_config_from_json(config["model"], options.config + ": model", UnknownKeys::refuse);
  }
  if (sweep.model->vocab_size == 0) sweep.model->vocab_size = kVocabulary;
  sweep.model->validate();
  sweep.lengths = lengths_within(*sweep.model, options.lengths);
  sweep.residual = taken_scores(sweep.model, options.residual, scores_named);
  sweep.mode = options.mode == "train" ? CallMode::train : CallMode::infer;
  if (sweep.mode == CallMode::train && std::count(options.compute.begin(), options.compute.end(), "int8") > 0) {
    fail_usage("etc benchmark", "--compute: training offers fp32 and bf16, not int8");
  }
  if (sweep.mode == CallMode::train && options.scores != kDefaultScores) {
    fail_usage("etc benchmark", "--scores: training offers int32, not {}", options.scores);
  }
  // A block is at most as long as the longest input.
  sweep.tokens_per_global =
      std::min(options.tokens_per_global, *std::max_element(sweep.lengths.begin(), sweep.lengths.end()));
  sweep.repeats = options.repeats;
  return sweep;
}

// The number types to measure. Types that the device does not support are left out with a log message; at least one
// must remain.
std::vector<ComputeType> offered_types(const std::vector<std::string>& names, Device device) {
  std::vector<ComputeType> types;
  for (const std::string& name : names) {
    const std::optional<ComputeType> type = compute_type_from_name(name);  // none: auto
    if (type && names.size() > 1 && !device_offers(device, *type)) {
      log::info("--compute {}: left out: the {} here does not offer it", name, device_name(device));
      continue;
    }
    const ComputeType chosen = chosen_compute(name, device);
    if (std::find(types.begin(), types.end(), chosen) == types.end()) types.push_back(chosen);
  }
  if (types.empty()) chosen_compute(names.front(), device);  // reports what is missing
  return types;
}

void check_paths(const BenchmarkOptions& options) {
  CommandPaths paths("etc benchmark");
  paths.reads("--config", options.config);
  if (!options.output.empty()) {
    paths.writes_into("--output", options.output);
    for (const char* name : kSweepFiles) paths.writes("--output", std::filesystem::path(options.output) / name);
    if (!options.overwrite) require_no_others(options.output);
  }
  paths.writes("--trace", options.profile.trace);
  paths.check();
}

// Throws UsageError for options that have no effect together.
void check_given(const Command& command, const BenchmarkOptions& options) {
  constexpr const char* kWhere = "etc benchmark";
  if (options.forecast && !options.output.empty()) {
    fail_usage(kWhere, "--forecast runs nothing, so there are no measurements to write: leave --output out");
  }
  if (options.forecast && options.profile.wanted())
    fail_usage(kWhere, "--profile and --trace go without --forecast, which runs nothing that could be measured");
  if (!options.config.empty() && is_given(command, "--preset"))
    fail_usage(kWhere, "--preset and --config both say the model: expected one of them");
  if (options.overwrite && options.output.empty())
    fail_usage(kWhere, "--overwrite needs --output, whose files it is of");
  const bool scores = std::any_of(options.residual.begin(), options.residual.end(),
                                  [](const std::string& kind) { return kind != "off"; });
  if (is_given(command, "--scores") && !scores)
    fail_usage(kWhere, "--scores is of residual scores: expected --residual sum or mean beside it");
}

void run_benchmark(const Command& command, const BenchmarkOptions& options) {
  check_given(command, options);
  check_paths(options);
  SweepOptions sweep = sweep_options(options, is_given(command, "--residual"));
  if (options.threads > 0) set_thread_count(options.threads);
  sweep.device = open_device(options.device).device;
  sweep.memory_limit = take_memory_limit(options.memory_limit, sweep.device);
  sweep.compute = offered_types(options.compute, sweep.device);
  sweep.scores = chosen_types("fp32", options.scores, sweep.device).scores;
  const StopSignal stop_signal;
  const InterruptionWatch watch([] { stop_if_told(processes(), "etc benchmark: stopped"); });  // between layers
  std::vector<SweepRow> rows = forecast_lengths(sweep);
  if (!options.forecast) {
    Profile profile(options.profile);
    measure_lengths(sweep, rows);
    profile.finish();
  }
  write_standard_output(sweep_table(rows));
  if (options.output.empty()) return;
  write_sweep(sweep, rows, options.output);
  write_standard_output(fmt::format("\n{}/{}\n", options.output, fmt::join(kSweepFiles, ", ")));
}

}  // namespace

void add_benchmark_command(Program& program) {
  program.add("benchmark", "measure time and memory against the sequence length", [](const Command& command) {
    auto options = std::make_shared<BenchmarkOptions>();
    command
        .option("--lengths", options->lengths,
                "long tokens of one example, separated by commas; those beyond the model's positions are left out")
        .comma_separated()
        .at_least(1)
        .at_most(kLongestExample)
        .show_default();
    command.option("--mode", options->mode, "infer: forward; train: forward, backward, update")
        .one_of({"infer", "train"})
        .show_default();
    command
        .option("--compute", options->compute,
                "number types of the large products: fp32, bf16, int8 (infer), auto (fp32 or bf16, whichever is "
                "faster); separated by commas; those the machine does not offer are left out")
        .comma_separated()
        .one_of({"auto", "fp32", "bf16", "int8"})
        .show_default();
    command
        .option("--residual", options->residual,
                "RealFormer scores: off, sum, mean; separated by commas; of the default, those that the model refuses "
                "are left out")
        .comma_separated()
        .one_of({"off", "sum", "mean"})
        .show_default();
    add_score_option(command, options->scores);
    command.option("--preset", options->preset, "size of the model").one_of(model_preset_names()).show_default();
    command.option("--config", options->config, "configuration file whose section model to use instead");
    command.option("--tokens-per-global", options->tokens_per_global, "long tokens per global token")
        .at_least(1)
        .show_default();
    command.option("--repeats", options->repeats, "timed calls per point; the median is shown")
        .at_least(1)
        .show_default();
    command.option("--output", options->output, "folder for benchmark.csv and two pictures: time.svg and memory.svg");
    command.flag("--overwrite", options->overwrite, "replace files there that are no earlier benchmark's");
    command.flag("--forecast", options->forecast, "only print the expected memory and time");
    add_memory_option(command, options->memory_limit,
                      "checkpoint layers where training needs it to fit, leave out what does not fit and tell the "
                      "longest input that does");
    add_profile_option(command, options->profile);
    add_device_option(command, options->device);
    add_threads_option(command, options->threads);
    command.footer(
        "Examples:\n"
        "  etc benchmark --lengths 512,1024,2048,4096,8192,16384 --mode infer --residual off,sum\n"
        "  etc benchmark --preset small --mode train --output lengths\n"
        "  etc benchmark --preset large --lengths 65536 --mode train --forecast\n"
        "  etc benchmark --mode train --lengths 4096,16384,65536 --forecast --memory-limit 8GB");
    command.action([command, options] {
      require_one_process("etc benchmark", "it");
      run_benchmark(command, *options);
    });
  });
}

}  // namespace etc::cli
