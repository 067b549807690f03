#include "tasks/train/run_config.h"

#include <algorithm>

#include "etc_core/base/error.h"
#include "etc_core/nn/backends.h"
#include "tasks/registry.h"

namespace etc {

namespace {

// In the order of --help: by name.
void append_section(std::vector<ConfigKey>& keys, const std::string& section, const Fields& fields) {
  std::vector<std::string> names = fields.names();
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) keys.push_back({section, *fields.find(name)});
}

std::vector<ConfigKey> make_config_keys() {
  std::vector<ConfigKey> keys;
  append_section(keys, "model", ModelConfig()->fields());
  append_section(keys, "task", task_name_fields());
  for (const TaskEntry& entry : task_entries()) {
    for (const Field& field : entry.task.keys) {
      const bool known = std::any_of(keys.begin(), keys.end(), [&](const ConfigKey& key) {
        return key.section == "task" && key.field.name == field.name;
      });
      if (!known) keys.push_back({"task", field, field.mark == kDecoding});
    }
  }
  append_section(keys, "data", data_fields());
  append_section(keys, "training", training_fields());
  return keys;
}

// The key as the given configuration knows it, or a UsageError that names the nearest one.
const ConfigKey& find_key(const Json& config, const std::string& section, const std::string& key,
                          const std::string& where) {
  std::vector<std::string> paths;
  for (const ConfigKey& entry : config_keys()) {
    if (!config.contains(entry.section) || !config[entry.section].contains(entry.field.name)) continue;
    if (entry.section == section && entry.field.name == key) return entry;
    paths.push_back(entry.path());
  }
  fail_usage(where, "unknown key {}.{}{}", section, key, suggestion(section + "." + key, paths));
}

}  // namespace

const FieldList<DataConfig>& data_fields() {
  using C = DataConfig;
  static const FieldList<C> kFields{
      FieldEntry<C>{"train", &C::train, "prepared data to train on, HDF5; several files are shards of one data set"}
          .as_option("--data"),
      FieldEntry<C>{"eval", &C::eval, "prepared data to evaluate on while training"}.as_option("--eval-data"),
      {"vocab", &C::vocab,
       "the vocabulary of the data; kept with the model. Needed by hotpotqa, which writes answers with it"},
      {"allow_incomplete", &C::allow_incomplete, kAllowIncompleteHelp},
  };
  return kFields;
}

const FieldList<TrainingConfig>& training_fields() {
  using C = TrainingConfig;
  const FieldRule from_0{.least = 0}, from_1{.least = 1}, share{.least = 0, .most = 1};
  static const FieldList<C> kFields{
      {"batch_size", &C::batch_size, "examples per optimiser step", from_1},
      {"micro_batch_tokens", &C::micro_batch_tokens, "long and global tokens in memory at once; 0: the whole batch",
       from_0},
      {"epochs", &C::epochs, "passes over the training data", {.above = 0}},
      {"steps", &C::steps, "optimiser steps; 0: examples / batch size * epochs", from_0},
      {"optimizer", &C::optimizer, "adamw or lamb", {.words = {"adamw", "lamb"}}},
      {"learning_rate", &C::learning_rate, "peak learning rate", from_0},
      {"warmup_proportion", &C::warmup_proportion, "share of the steps in which the rate rises from 0", share},
      {"weight_decay", &C::weight_decay, "decay of kernels and tables, not of biases and layer norms", from_0},
      {"clip_norm", &C::clip_norm, "largest norm of the whole gradient; 0: not clipped", from_0},
      {"eval_every", &C::eval_every, "steps between evaluations; 0: once per epoch", from_0},
      {"save_every", &C::save_every, "steps between checkpoints to resume from", from_1, kMayChange},
      {"log_every", &C::log_every, "steps between lines of metrics.jsonl", from_1, kMayChange},
      {"early_stopping", &C::early_stopping, "stop after this many evaluations without a better result; 0: never",
       from_0},
      {"seed", &C::seed, "of fresh weights, order of examples and dropout"},
      {"threads", &C::threads, "threads to compute with; 0: all processors", from_0, kMayChange},
      {"device", &C::device, device_help().c_str(), {.words = device_choices()}, kMayChange},
      {"deterministic",
       &C::deterministic,
       "on a GPU, run: same bits for the same batches; strict: an example's states do not depend on its neighbours",
       {.words = {"run", "strict"}}},
      {"compute",
       &C::compute,
       "number type of the encoder's large products: fp32; bf16: rounded operands, sums and all else in fp32; auto: "
       "whichever this machine does faster, and the run keeps it",
       {.words = {"fp32", "bf16", "auto"}}},
      {"init_from", &C::init_from, "checkpoint folder to take weights from"},
  };
  return kFields;
}

const std::vector<ConfigKey>& config_keys() {
  static const std::vector<ConfigKey> kKeys = make_config_keys();
  return kKeys;
}

Json option_value(const Field& key, const std::vector<std::string>& words) {
  if (key.kind == FieldKind::texts) return words;
  if (key.kind == FieldKind::boolean && words.empty()) return true;
  const std::string word = words.size() == 1 ? words[0] : "";
  if ((key.kind == FieldKind::text || key.kind == FieldKind::word) && words.size() == 1) return word;
  if (key.kind == FieldKind::optional_integer && word == "none") return nullptr;
  Json value = try_parse_json(word);  // numbers and true/false are spelled as in JSON
  if (words.size() != 1 || value.is_discarded() || !has_kind(key, value)) {
    fail_usage(key.option_name(), "expected {}, got \"{}\"",
               key.kind == FieldKind::optional_integer ? "an integer or none" : kind_text(key), fmt::join(words, " "));
  }
  return value;
}

void overlay_config(Json& config, const Json& changes, const std::string& where) {
  if (!changes.is_object()) fail_usage(where, "expected an object with the sections model, task, data, training");
  for (const auto& [section, keys] : changes.items()) {
    if (!config.contains(section)) {
      fail_usage(where, "unknown section {}{}", section, suggestion(section, {"model", "task", "data", "training"}));
    }
    if (!keys.is_object()) fail_usage(where, "{}: expected an object of keys, got {}", section, keys.type_name());
    for (const auto& [key, value] : keys.items()) {
      const ConfigKey& known = find_key(config, section, key, where);
      require_kind(known.field, value, where, known.path());
      config[section][key] = value;
    }
  }
}

std::string named_task(const Json& config) {
  const auto section = config.find("task");
  return section != config.end() && section->is_object() ? task_name(*section) : std::string();
}

Json default_config(const std::string& task) {
  Json config = {{"model", ModelConfig()->fields().defaults()},
                 {"task", section_of_task(task)},
                 {"data", data_fields().defaults()},
                 {"training", training_fields().defaults()}};
  config["task"].update(task_kind(task).keys.defaults());
  return config;
}

Json RunConfig::to_json() const {
  return {{"model", model->to_json()},
          {"task", task},
          {"data", data_fields().to_json(data)},
          {"training", training_fields().to_json(training)}};
}

std::string absolute_path(const std::string& path) {
  return path.empty() ? path : std::filesystem::absolute(path).string();
}

RunConfig with_absolute_paths(RunConfig config) {
  for (auto* files : {&config.data.train, &config.data.eval}) {
    for (std::string& file : *files) file = absolute_path(file);
  }
  config.data.vocab = absolute_path(config.data.vocab);
  config.training.init_from = absolute_path(config.training.init_from);
  return config;
}

void require_data_files(const DataConfig& data, const std::string& where) {
  const auto require = [&](const std::string& file, const char* key, const char* option) {
    if (file.empty() || std::filesystem::exists(file)) return;
    const bool relative = std::filesystem::path(file).is_relative();
    fail(where, "data.{}: {} is not there{} (give {} FILE if it lies elsewhere now{})", key, absolute_path(file),
         relative ? fmt::format(": the run says {}, from the folder it was started in", file) : "", option,
         relative ? ", or resume from that folder" : "");
  };
  for (const std::string& file : data.train) require(file, "train", "--data");
  for (const std::string& file : data.eval) require(file, "eval", "--eval-data");
  require(data.vocab, "vocab", "--vocab");
}

RunConfig run_config_from_json(const Json& json, const std::string& where) {
  RunConfig config{model_config_from_json(json.at("model"), where + ": model", UnknownKeys::refuse), json.at("task"),
                   data_fields().read(json.at("data"), "config", "data."),
                   training_fields().read(json.at("training"), "config", "training.")};
  config.model->validate();
  return config;
}

RunConfig resolve_config(const std::optional<std::filesystem::path>& file, const Json& options,
                         const CheckpointModel& checkpoint) {
  const Json from_file = file ? read_json_file(*file) : Json::object();
  const std::string where = file ? "config: " + file->string() : "config";
  if (!from_file.is_object()) fail_usage(where, "expected an object with the sections model, task, data, training");
  std::string task = named_task(options);
  if (task.empty()) task = named_task(from_file);
  if (task.empty()) fail_usage("config", "no task is named: give --task or a configuration file with task.name");
  const auto overlaid = [&](Json config) {
    overlay_config(config, from_file, where);
    overlay_config(config, options, "config: options");
    return config;
  };
  Json config = overlaid(default_config(task));
  const auto start = training_fields().read_unchecked(config["training"], "config", "training.").init_from;
  if (checkpoint && !start.empty()) {
    Json started = default_config(task);
    overlay_config(started, Json{{"model", checkpoint(start)}}, "config: the checkpoint to start from");
    config = overlaid(std::move(started));
  }
  return run_config_from_json(config, where);
}

}  // namespace etc
