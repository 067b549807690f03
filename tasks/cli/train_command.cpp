// etc train: trains, fine-tunes or resumes a run.
#include <algorithm>
#include <optional>

#include "etc_core/base/error.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/nn/backends.h"
#include "tasks/cli/command_paths.h"
#include "tasks/cli/commands.h"
#include "tasks/cli/config_options.h"
#include "tasks/cli/grid_option.h"
#include "tasks/cli/memory_option.h"
#include "tasks/cli/processes.h"
#include "tasks/cli/profile_option.h"
#include "tasks/cli/step_forecast.h"
#include "tasks/output.h"
#include "tasks/registry.h"
#include "tasks/train/memory_fit.h"
#include "tasks/train/run_directory.h"
#include "tasks/train/trainer.h"

namespace etc::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLinkMegabits = 10'000, kLinkMicroseconds = 50;

struct TrainOptions {
  std::string config;
  std::string output;
  std::string resume;
  bool forecast = false;
  int processes = 0;  // for the forecast; 0: not given
  std::int64_t link_megabits = kLinkMegabits, link_microseconds = kLinkMicroseconds;
  std::string memory_limit;
  ProfileOption profile;
  GivenOptions given;
  std::shared_ptr<GridOption> grid;
};

// The file that a run's configuration is based on. A resumed run is based on its own resolved configuration.
std::optional<fs::path> config_file(const TrainOptions& options) {
  if (options.resume.empty() == options.output.empty() && !options.forecast) {
    fail_usage("etc train", "expected either --output RUN (a new run or one to go on with) or --resume RUN");
  }
  if (!options.resume.empty() && !options.config.empty()) {
    fail_usage("etc train", "--resume takes the run's own configuration: leave --config out");
  }
  if (options.resume.empty()) return options.config.empty() ? std::nullopt : std::optional<fs::path>(options.config);
  const fs::path run = fs::absolute(fs::path(options.resume) / ".").parent_path().parent_path();
  if (fs::exists(fs::path(options.resume) / "model.safetensors") && is_run_folder(run)) {
    fail_usage("etc train", "--resume {}: expected a run, got one of its checkpoints (--resume {})", options.resume,
               run.string());
  }
  const fs::path file = fs::path(options.resume) / "config.json";
  if (!fs::exists(file)) fail(options.resume, "there is no run to resume: config.json is missing");
  if (!is_run_folder(options.resume) && !fs::is_directory(fs::path(options.resume) / "last")) {
    fail(options.resume,
         "there is no run to resume: expected the folder of a run, got a model (--init-from starts a run from it)");
  }
  return file;
}

// The configuration of a run with the given options, {section: {key: value}}.
RunConfig resolve(const TrainOptions& options, const Json& given) {
  const std::optional<fs::path> file = config_file(options);
  // The checkpoint to start from determines the model, unless file or options override it.
  const auto of_checkpoint = [](const fs::path& folder) { return read_encoder_config(folder)->to_json(); };
  RunConfig config = resolve_config(file, given, options.resume.empty() ? CheckpointModel(of_checkpoint) : nullptr);
  if (options.processes > 0 && !options.forecast) {
    fail_usage("etc train", "--processes goes with --forecast: mpirun starts processes (mpirun -n {} etc train …)",
               options.processes);
  }
  if (options.processes == 0 &&
      (options.link_megabits != kLinkMegabits || options.link_microseconds != kLinkMicroseconds)) {
    fail_usage("etc train", "--link-megabits and --link-microseconds go with --forecast --processes R");
  }
  if (options.forecast && options.profile.wanted()) {
    fail_usage("etc train", "--profile and --trace go without --forecast, which computes no step");
  }
  if (config.data.train.empty()) fail_usage("etc train", "expected prepared data to train on: --data FILE");
  if (config.training.steps > 0 && given.value("training", Json::object()).contains("epochs")) {
    fail_usage("etc train",
               "--epochs: with steps={} the epochs say nothing: expected --steps N, or --steps 0 beside them",
               config.training.steps);
  }
  if (!options.resume.empty()) require_data_files(config.data, file->string());
  return config;
}

// Files that the run replaces in its folder must not be its inputs.
void check_paths(const TrainOptions& options, const RunConfig& config, const fs::path& output) {
  const char* option = options.resume.empty() ? "--output" : "--resume";
  CommandPaths paths("etc train");
  paths.writes_into(option, output);
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

// The largest micro-batches that fit into the limit, if one was given; chosen by the first process.
RunConfig fitted(const TrainOptions& options, RunConfig config, const fs::path& output) {
  if (options.memory_limit.empty()) return config;
  const Device device = open_device(config.training.device).device;
  const std::int64_t limit = take_memory_limit(options.memory_limit, device);
  if (processes().first()) config = fit_memory(std::move(config), limit, output);
  return config_of_first(config);
}

void run_one(const TrainOptions& options) {
  const fs::path output = options.resume.empty() ? options.output : options.resume;
  // Only the first process reads the run's folder, which may determine the configuration; it also chooses what fits
  // into memory.
  const bool own_folder = processes().first() || options.resume.empty();
  RunConfig config = own_folder ? resolve(options, *options.given) : RunConfig();
  if (!options.resume.empty()) config = config_of_first(config);
  if (!options.forecast && processes().first()) check_paths(options, config, output);
  config = fitted(options, std::move(config), output);
  if (options.forecast) {
    require_one_process("etc train", "--forecast");
    print("expected peak memory {}\n", memory_text(forecast_memory(config, std::max(1, options.processes))));
    if (options.processes == 0) return;
    const LinkRates link{static_cast<double>(options.link_megabits) * 1e6 / 8,
                         static_cast<double>(options.link_microseconds) * 1e-6};
    print("{}", step_time_text(measured_step(config), link, options.processes));
    return;
  }
  Profile profile(options.profile);
  const TrainReport report = train(config, output, processes());
  profile.finish();
  print("steps {}\n", report.step);
  for (const auto& [name, value] : report.best) print("{} {:.6g}\n", name, value);
}

void run_grid(const TrainOptions& options) {
  if (!options.resume.empty() || options.forecast) {
    fail_usage("etc train", "--grid and --seeds go with --output (the same command again goes on), not with {}",
               options.forecast ? "--forecast, which is of one run" : "--resume");
  }
  const fs::path output = options.output;
  std::vector<GridRun> runs =
      plan_grid(options.grid->grid, *options.given, [&](const Json& given) { return resolve(options, given); });
  if (is_run_folder(output)) {
    fail_usage("etc train", "--output {}: expected a folder for a grid of runs, got that of one run", output.string());
  }
  for (GridRun& run : runs) {
    if (processes().first()) check_paths(options, run.config, output / run.folder());
    run.config = fitted(options, std::move(run.config), output / run.folder());
  }
  Profile profile(options.profile);
  const std::vector<GridResult> results = train_grid(runs, output, processes());
  profile.finish();
  print("{}", grid_text(runs, results));
}

}  // namespace

void add_train_command(Program& program) {
  program.add("train", "train a model on prepared data, or resume a run", [](const Command& command) {
    auto options = std::make_shared<TrainOptions>();
    command.option("--config", options->config, "configuration file, JSON with sections model, task, data, training");
    command.option("--output", options->output, "the run's folder; the same command again resumes the run");
    command.option("--resume", options->resume, "resume this run with its own configuration");
    command.flag("--forecast", options->forecast, "only print the expected memory of the run");
    command
        .option("--processes", options->processes,
                "with --forecast: expected memory of each of this many processes (mpirun), and time of their step")
        .at_least(1);
    command.option("--link-megabits", options->link_megabits, "with --processes: Mbit/s from one process to another")
        .show_default()
        .at_least(1);
    command
        .option("--link-microseconds", options->link_microseconds, "with --processes: latency of the shortest message")
        .show_default()
        .at_least(0);
    add_memory_option(command, options->memory_limit,
                      "choose --micro-batch-tokens and --grad-checkpointing-period that fit; the run keeps the choice");
    add_profile_option(command, options->profile);
    options->grid = add_grid_option(command);
    options->given = add_config_options(command, [](const ConfigKey&) { return true; });
    command.task_first(task_names());
    command.footer(
        "Examples:\n"
        "  etc train --config tasks/configs/wikihop_tiny.json --data train.h5 --eval-data dev.h5 --output run\n"
        "  etc train --resume run\n"
        "  etc train --config tasks/configs/wikihop_base.json --data train.h5 --forecast\n"
        "  etc train --config tasks/configs/wikihop_base.json --data train.h5 --output run --memory-limit 8GB\n"
        "  etc train --config tasks/configs/wikihop_base.json --init-from etc_base --data train.h5 --output run2\n"
        "  etc train --config c.json --data train.h5 --eval-data dev.h5 --output sweep --seeds 5 --grid "
        "learning_rate=1e-5,2e-5 epochs=2,3");
    command.action([options] {
      if (options->grid->given) {
        run_grid(*options);
      } else {
        run_one(*options);
      }
    });
  });
}

}  // namespace etc::cli
