// The configuration of a run: sections model, task, data, training; from a file, overridden by options.
//
// A configuration is a JSON object of sections of keys, each declared in one list (base/fields.h): the fields of the
// model's kind, the task's keys, data_fields(), training_fields(). The lists give the defaults; a file overrides them,
// and options override both. Every key is also the option --key-with-dashes. Unknown keys and values of another type
// are UsageErrors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "etc_core/base/fields.h"
#include "etc_core/base/json.h"
#include "etc_core/nn/encoder_config.h"
#include "tasks/train/config_keys.h"

namespace etc {

// Help of --allow-incomplete, for every command that has it.
inline constexpr const char* kAllowIncompleteHelp =
    "accept prepared data of which a raw file could not be read to its end";

// More than any machine has processors: a larger number is a typing error, and each thread takes memory.
inline constexpr std::int64_t kMostThreads = 4096;

struct DataConfig {
  std::vector<std::string> train;  // HDF5 files, shards of one data set
  std::vector<std::string> eval;   // none: no evaluation; `best` is then the last checkpoint
  std::string vocab;               // the data's vocabulary, kept with the model; may be empty
  std::string splitter;            // "punkt:FOLDER": tables the data were split with, kept with the model; may be empty
  bool allow_incomplete = false;   // accept data whose raw input could not be read to its end
};

struct TrainingConfig {
  std::int64_t batch_size = 32;
  std::int64_t tokens_per_batch = 0;
  bool padded_batches = false;
  std::int64_t micro_batch_tokens = 0;
  double epochs = 15;
  std::int64_t steps = 0;
  std::string optimizer = "adamw";
  double adam_beta_1 = 0.9;
  double adam_beta_2 = 0.999;
  double adam_epsilon = 1e-6;
  double learning_rate = 4e-5;
  std::string schedule = "bert";
  double warmup_proportion = 0.1;
  std::int64_t warmup_steps = 0;
  double start_learning_rate = 0;
  double end_learning_rate = 0;
  double decay_power = 1;
  double weight_decay = 0.01;
  double clip_norm = 1.0;
  std::int64_t eval_every = 0;
  std::int64_t eval_batches = 0;
  Json save_every = 1000;  // steps, or a time as text (save_schedule.h)
  std::int64_t keep_last = 0;
  std::int64_t keep_every = 0;
  std::int64_t log_every = 10;
  std::int64_t early_stopping = 0;
  std::uint64_t seed = 1;
  std::int64_t threads = 0;
  bool shard_moments = false;
  std::int64_t bucket_bytes = 25'000'000;
  std::string device = "cpu";
  std::string deterministic = "run";
  std::string compute = "fp32";
  std::string init_from;
  bool resize_relative = false;
};

const FieldList<DataConfig>& data_fields();
const FieldList<TrainingConfig>& training_fields();

// Field::mark of a key of section `training` that may change when a run is resumed, because the bits do not depend on
// it.
inline constexpr int kMayChange = 1;
// Field::mark of a key that may grow (more_steps.h).
inline constexpr int kMayGrow = 2;

struct RunConfig {
  ModelConfig model;
  Json task;  // the task's own keys, plus name
  DataConfig data;
  TrainingConfig training;

  Json to_json() const;  // all four sections, every key
};

// The path made absolute, valid from every folder; an empty one stays empty.
std::string absolute_path(const std::string& path);

// `config` with all its paths absolute. Runs keep this form because they may be resumed from another folder.
RunConfig with_absolute_paths(RunConfig config);

// Throws UsageError at the first path, made absolute, that is not UTF-8: JSON cannot represent it, so the path would be
// lost.
void require_paths_in_utf8(const RunConfig& config);

// Throws Error at the first path of section data that does not exist, naming the paths tried and the option to set;
// `where`: the configuration that names them. For a resumed run, whose data may have moved.
void require_data_files(const DataConfig& data, const std::string& where);

// The JSON value of an option's words: numbers, true/false, "none" for an absent optional number, one word per list
// entry. Throws UsageError naming the option.
Json option_value(const Field& key, const std::vector<std::string>& words);

// Overlay of `changes` ({section: {key: value}}) on `config`, checked: throws UsageError "config: <where>: unknown key
// section.key (did you mean …?)" or "…: section.key: expected …, got …".
void overlay_config(Json& config, const Json& changes, const std::string& where);

// The task named by a configuration or a checkpoint's config.json; "" when it names none.
std::string named_task(const Json& config);

// Every section at its defaults, for a task and a kind of encoder. Throws UsageError on unknown names.
Json default_config(const std::string& task, const std::string& kind = "etc");

// The typed configuration of a complete, checked JSON configuration. Validates ranges: throws UsageError.
RunConfig run_config_from_json(const Json& json, const std::string& where);

// Reads the keys of section model of a checkpoint folder.
using CheckpointModel = std::function<Json(const std::filesystem::path& folder)>;

// The complete resolution: defaults ← checkpoint of training.init_from ← file (may be absent) ← options. The task's
// name comes from options, else from the file. The kind of model comes from options, else from the file, else from the
// checkpoint, else it is "etc". checkpoint: null: the checkpoint does not describe the model.
RunConfig resolve_config(const std::optional<std::filesystem::path>& file, const Json& options,
                         const CheckpointModel& checkpoint);

}  // namespace etc
