#include <optional>

#include "etc_core/base/error.h"
#include "etc_core/checkpoint/model_files.h"
#include "tasks/library/entry.h"
#include "tasks/train/run_directory.h"
#include "tasks/train/trainer.h"

namespace longetc {

namespace {

namespace fs = std::filesystem;

etc::RunConfig config_of(const TrainOptions& options) {
  if (options.output.empty()) etc::fail_usage("train", "output: expected a folder for the run, got none");
  const fs::path output = options.output;
  if (fs::exists(output) && !fs::is_directory(output))
    etc::fail_usage("train", "output {}: expected a folder for the run, got a file", options.output);
  const etc::Json given = etc::parse_json(options.config, "train: config");
  if (!given.is_object()) etc::fail_usage("train", "config: expected an object, got {}", etc::json_line(given));
  const bool goes_on = options.config_file.empty() && given.empty() && etc::is_run_folder(output);
  std::optional<fs::path> file;
  if (goes_on) file = output / "config.json";
  if (!options.config_file.empty()) file = options.config_file;
  const auto of_checkpoint = [](const fs::path& folder) { return etc::read_encoder_config(folder)->to_json(); };
  etc::RunConfig config = etc::resolve_config(file, given, goes_on ? nullptr : etc::CheckpointModel(of_checkpoint));
  if (config.data.train.empty()) etc::fail_usage("train", "expected prepared data to train on: data.train");
  if (goes_on) etc::require_data_files(config.data, file->string());
  return config;
}

}  // namespace

TrainReport train(const TrainOptions& options, const Progress& progress) {
  return guarded_long(progress, [&](LongCall&) {
    const etc::TrainReport report = etc::train(config_of(options), options.output);
    return TrainReport{report.step, report.best};
  });
}

}  // namespace longetc
