// etc train: trains, fine-tunes or resumes a run.
#include <algorithm>
#include <optional>

#include "etc_core/base/error.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/nn/backends.h"
#include "tasks/cli/command_paths.h"
#include "tasks/cli/commands.h"
#include "tasks/cli/config_options.h"
#include "tasks/cli/memory_option.h"
#include "tasks/cli/processes.h"
#include "tasks/cli/profile_option.h"
#include "tasks/output.h"
#include "tasks/train/memory_fit.h"
#include "tasks/train/trainer.h"

namespace etc::cli {

namespace {

namespace fs = std::filesystem;

struct TrainOptions {
  std::string config;
  std::string output;
  std::string resume;
  bool forecast = false;
  int processes = 0;  // of the forecast; 0: not given
  std::string memory_limit;
  ProfileOption profile;
  GivenOptions given;
};

// Where the run writes and what it runs with. A resumed run starts from its own resolved configuration.
RunConfig resolve(const TrainOptions& options, fs::path& output) {
  if (options.resume.empty() == options.output.empty() && !options.forecast) {
    fail_usage("etc train", "expected either --output RUN (a new run or one to go on with) or --resume RUN");
  }
  if (!options.resume.empty() && !options.config.empty()) {
    fail_usage("etc train", "--resume takes the run's own configuration: leave --config out");
  }
  output = options.resume.empty() ? options.output : options.resume;
  std::optional<fs::path> file;
  if (!options.config.empty()) file = options.config;
  if (!options.resume.empty()) {
    file = output / "config.json";
    if (!fs::exists(*file)) fail(output.string(), "there is no run to resume: config.json is missing");
  }
  // The checkpoint to start from says what the model is, unless file or options say otherwise.
  const auto of_checkpoint = [](const fs::path& folder) { return read_encoder_config(folder)->to_json(); };
  RunConfig config =
      resolve_config(file, *options.given, options.resume.empty() ? CheckpointModel(of_checkpoint) : nullptr);
  if (options.processes > 0 && !options.forecast) {
    fail_usage("etc train", "--processes goes with --forecast: mpirun starts processes (mpirun -n {} etc train …)",
               options.processes);
  }
  if (config.data.train.empty()) fail_usage("etc train", "expected prepared data to train on: --data FILE");
  if (!options.resume.empty()) require_data_files(config.data, file->string());
  return config;
}

// What the run replaces in its folder must not be what it reads.
void check_paths(const TrainOptions& options, const RunConfig& config, const fs::path& output) {
  const char* option = options.resume.empty() ? "--output" : "--resume";
  if (fs::exists(output) && !fs::is_directory(output)) {
    fail_usage("etc train", "{} {}: expected a folder for the run, got a file", option, output.string());
  }
  CommandPaths paths("etc train");
  paths.reads("--config", options.config);
  paths.reads("--data", config.data.train);
  paths.reads("--eval-data", config.data.eval);
  paths.reads("--vocab", config.data.vocab);
  paths.reads_folder("--init-from", config.training.init_from);
  for (const char* name : {"config.json", "metrics.jsonl", "log.txt", "lock"}) paths.writes(option, output / name);
  for (const char* checkpoint : {"best", "last"}) {
    for (const char* name : {"config.json", "model.safetensors", "state.safetensors", "vocab.txt", "vocab.model"}) {
      paths.writes(option, output / checkpoint / name);
    }
  }
  paths.writes("--trace", options.profile.trace);
  paths.check();
}

// The first process's configuration.
RunConfig config_of_first(const RunConfig& own) {
  if (processes().size() == 1) return own;
  const std::string text = from_first(processes(), processes().first() ? json_line(own.to_json()) : "");
  return run_config_from_json(parse_json(text, "configuration"), "configuration of the first process");
}

}  // namespace

void add_train_command(Program& program) {
  const Command command = program.add("train", "train a model on prepared data, or go on with a run");
  auto options = std::make_shared<TrainOptions>();
  command.option("--config", options->config, "configuration file, JSON with sections model, task, data, training");
  command.option("--output", options->output, "the run's folder; the same command again goes on with the run");
  command.option("--resume", options->resume, "go on with this run, with its own configuration");
  command.flag("--forecast", options->forecast, "only say how much memory the run would take");
  command.option("--processes", options->processes, "with --forecast: of each of so many processes (mpirun)")
      .at_least(1);
  add_memory_option(command, options->memory_limit,
                    "choose --micro-batch-tokens and --grad-checkpointing-period that fit; the run keeps the choice");
  add_profile_option(command, options->profile);
  options->given = add_config_options(command, [](const ConfigKey&) { return true; });
  command.footer(
      "Examples:\n"
      "  etc train --config tasks/configs/wikihop_tiny.json --data train.h5 --eval-data dev.h5 --output run\n"
      "  etc train --resume run\n"
      "  etc train --config tasks/configs/wikihop_base.json --data train.h5 --forecast\n"
      "  etc train --config tasks/configs/wikihop_base.json --data train.h5 --output run --memory-limit 8GB\n"
      "  etc train --config tasks/configs/wikihop_base.json --init-from etc_base --data train.h5 --output run2");
  command.action([options] {
    fs::path output;
    // The run's folder, which may say how the run began, is the first process's; so is what fits into memory.
    const bool own_folder = processes().first() || options->resume.empty();
    RunConfig config = own_folder ? resolve(*options, output) : RunConfig();
    if (!options->resume.empty()) config = config_of_first(config);
    if (!options->forecast && processes().first()) check_paths(*options, config, output);
    if (!options->memory_limit.empty()) {
      const Device device = open_device(config.training.device).device;
      const std::int64_t limit = take_memory_limit(options->memory_limit, device);
      if (processes().first()) config = fit_memory(config, limit, output);
      config = config_of_first(config);
    }
    if (options->forecast) {
      require_one_process("etc train", "--forecast");
      print("expected peak memory {}\n", memory_text(forecast_memory(config, std::max(1, options->processes))));
      return;
    }
    Profile profile(options->profile);
    const TrainReport report = train(config, output, processes());
    profile.finish();
    print("steps {}\n", report.step);
    for (const auto& [name, value] : report.best) print("{} {:.6g}\n", name, value);
  });
}

}  // namespace etc::cli
