#include "tasks/train/run_config.h"

#include <algorithm>
#include <cmath>

#include "etc_core/base/error.h"
#include "etc_core/nn/backends.h"
#include "tasks/registry.h"

namespace etc {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DataConfig, train, eval, vocab, allow_incomplete)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TrainingConfig, batch_size, micro_batch_tokens, epochs, steps, optimizer,
                                   learning_rate, warmup_proportion, weight_decay, clip_norm, eval_every, save_every,
                                   log_every, early_stopping, seed, threads, device, deterministic, compute, init_from)

namespace {

using Kind = ConfigKey::Kind;

// The help of every key that is not a task's own. Keys and defaults are those of the structs; a test holds the two
// together.
const std::map<std::string, std::string>& help_texts() {
  static const std::map<std::string, std::string> kTexts = {
      {"model.vocab_size", "rows of the token table"},
      {"model.segment_vocab_size", "rows of the token type table"},
      {"model.embedding_size", "width of the token table; none: hidden size"},
      {"model.hidden_size", "width H of the hidden states"},
      {"model.num_hidden_layers", "layers"},
      {"model.num_attention_heads", "heads N"},
      {"model.local_radius", "long tokens see this many long tokens to each side"},
      {"model.att_size_per_head", "head size D; none: hidden size / heads"},
      {"model.relative_pos_max_distance", "distances beyond share one relative label; 0: no relative labels"},
      {"model.relative_vocab_size", "relative labels R; none: no relative attention"},
      {"model.max_absolute_position_embeddings", "rows of the position tables; 0: no absolute positions"},
      {"model.intermediate_size", "feed-forward width F"},
      {"model.hidden_act", "activation of the feed-forward layers: gelu, relu, tanh, linear"},
      {"model.hidden_dropout_prob", "dropout of hidden states while training"},
      {"model.attention_probs_dropout_prob", "dropout of attention probabilities while training"},
      {"model.initializer_range", "standard deviation of fresh weights"},
      {"model.share_feed_forward_params", "one feed-forward layer for long and global tokens"},
      {"model.share_kv_projections", "l2g uses l2l's keys and values, g2l those of g2g"},
      {"model.share_qkv_projections", "one query, key and value projection for all attention types"},
      {"model.share_att_output_projection", "one output projection for long and global tokens"},
      {"model.use_pre_activation_order", "layer norm before, not after each block"},
      {"model.use_hard_g2l_mask", "global tokens see only the long tokens that belong to them"},
      {"model.use_hard_l2g_mask", "long tokens see only the global tokens they belong to"},
      {"model.grad_checkpointing_period", "keep only every n-th layer's input for the backward pass; 0: keep all"},
      {"model.use_residual_attention", "RealFormer: attention scores are summed over the layers"},
      {"model.use_running_mean", "RealFormer: attend to the mean of the summed scores, not to their sum"},
      {"model.residual_attention_types", "attention types that carry scores: l2l l2g g2g g2l"},
      {"data.train", "prepared data to train on, HDF5; several files are shards of one data set"},
      {"data.eval", "prepared data to evaluate on while training"},
      {"data.vocab",
       "the vocabulary of the data; kept with the model. Needed by hotpotqa, which writes answers with it"},
      {"data.allow_incomplete", kAllowIncompleteHelp},
      {"training.batch_size", "examples per optimiser step"},
      {"training.micro_batch_tokens", "long and global tokens in memory at once; 0: the whole batch"},
      {"training.epochs", "passes over the training data"},
      {"training.steps", "optimiser steps; 0: examples / batch size * epochs"},
      {"training.optimizer", "adamw or lamb"},
      {"training.learning_rate", "peak learning rate"},
      {"training.warmup_proportion", "share of the steps in which the rate rises from 0"},
      {"training.weight_decay", "decay of kernels and tables, not of biases and layer norms"},
      {"training.clip_norm", "largest norm of the whole gradient; 0: not clipped"},
      {"training.eval_every", "steps between evaluations; 0: once per epoch"},
      {"training.save_every", "steps between checkpoints to resume from"},
      {"training.log_every", "steps between lines of metrics.jsonl"},
      {"training.early_stopping", "stop after this many evaluations without a better result; 0: never"},
      {"training.seed", "of fresh weights, order of examples and dropout"},
      {"training.threads", "threads to compute with; 0: all processors"},
      {"training.device", device_help()},
      {"training.deterministic",
       "on a GPU, run: same bits for the same batches; strict: an example's states do not depend on its neighbours"},
      {"training.compute",
       "number type of the encoder's large products: fp32; bf16: rounded operands, sums and all else in fp32; auto: "
       "whichever this machine does faster, and the run keeps it"},
      {"training.init_from", "checkpoint folder to take weights from"},
  };
  return kTexts;
}

Kind kind_of(const Json& value) {
  if (value.is_null()) return Kind::optional_integer;
  if (value.is_boolean()) return Kind::boolean;
  if (value.is_number_integer()) return Kind::integer;
  if (value.is_number()) return Kind::number;
  if (value.is_array()) return Kind::texts;
  return Kind::text;
}

const char* kind_text(Kind kind) {
  switch (kind) {
    case Kind::integer:
      return "an integer";
    case Kind::optional_integer:
      return "an integer or null";
    case Kind::number:
      return "a number";
    case Kind::boolean:
      return "true or false";
    case Kind::text:
      return "a string";
    case Kind::texts:
      return "a list of strings";
  }
  return "";
}

bool fits(const Json& value, Kind kind) {
  switch (kind) {
    case Kind::integer:
      return value.is_number_integer();
    case Kind::optional_integer:
      return value.is_number_integer() || value.is_null();
    case Kind::number:
      return value.is_number();
    case Kind::boolean:
      return value.is_boolean();
    case Kind::text:
      return value.is_string();
    case Kind::texts:
      return value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& v) { return v.is_string(); });
  }
  return false;
}

void append_section(std::vector<ConfigKey>& keys, const std::string& section, const Json& defaults) {
  for (const auto& [key, value] : defaults.items()) {
    ConfigKey entry{section, key, kind_of(value), value, ""};
    if (entry.path() == "model.relative_vocab_size") entry.kind = Kind::optional_integer;
    if (const auto text = help_texts().find(entry.path()); text != help_texts().end()) entry.help = text->second;
    keys.push_back(std::move(entry));
  }
}

std::vector<ConfigKey> make_config_keys() {
  std::vector<ConfigKey> keys;
  append_section(keys, "model", ModelConfig()->to_json());
  keys.push_back({"task", "name", Kind::text, "", fmt::format("the task: {}", fmt::join(task_names(), ", "))});
  for (const TaskEntry& entry : task_entries()) {
    for (const Field& field : entry.task.keys) {
      const bool known = std::any_of(keys.begin(), keys.end(),
                                     [&](const ConfigKey& k) { return k.section == "task" && k.key == field.name; });
      if (known) continue;
      keys.push_back(
          {"task", field.name, kind_of(field.default_value), field.default_value, field.help, field.mark == kDecoding});
    }
  }
  append_section(keys, "data", DataConfig{});
  append_section(keys, "training", TrainingConfig{});
  return keys;
}

// The key as the given configuration knows it, or a UsageError that names the nearest one.
const ConfigKey& find_key(const Json& config, const std::string& section, const std::string& key,
                          const std::string& where) {
  std::vector<std::string> paths;
  for (const ConfigKey& entry : config_keys()) {
    if (!config.contains(entry.section) || !config[entry.section].contains(entry.key)) continue;
    if (entry.section == section && entry.key == key) return entry;
    paths.push_back(entry.path());
  }
  fail_usage(where, "unknown key {}.{}{}", section, key, suggestion(section + "." + key, paths));
}

void check_positive(const char* key, double value, bool zero_is_legal) {
  if (!(value > 0 || (zero_is_legal && value == 0)) || !std::isfinite(value)) {
    fail_usage("config", "training.{}: expected a number {} 0, got {}", key, zero_is_legal ? ">=" : ">", value);
  }
}

}  // namespace

std::string ConfigKey::option_name() const {
  if (section == "task" && key == "name") return "--task";
  if (section == "data" && key == "train") return "--data";
  if (section == "data" && key == "eval") return "--eval-data";
  std::string name = "--" + key;
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

const std::vector<ConfigKey>& config_keys() {
  static const std::vector<ConfigKey> kKeys = make_config_keys();
  return kKeys;
}

Json option_value(const ConfigKey& key, const std::vector<std::string>& words) {
  if (key.kind == Kind::texts) return words;
  if (key.kind == Kind::boolean && words.empty()) return true;
  const std::string word = words.size() == 1 ? words[0] : "";
  if (key.kind == Kind::text && words.size() == 1) return word;
  if (key.kind == Kind::optional_integer && word == "none") return nullptr;
  Json value = try_parse_json(word);  // numbers and true/false are spelled as in JSON
  if (words.size() != 1 || value.is_discarded() || !fits(value, key.kind)) {
    fail_usage(key.option_name(), "expected {}, got \"{}\"",
               key.kind == Kind::optional_integer ? "an integer or none" : kind_text(key.kind), fmt::join(words, " "));
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
      if (!fits(value, known.kind)) {
        fail_usage(where, "{}: expected {}, got {}", known.path(), kind_text(known.kind), json_line(value));
      }
      config[section][key] = value;
    }
  }
}

Json default_config(const std::string& task) {
  Json config = {{"model", ModelConfig()->to_json()},
                 {"task", {{"name", task}}},
                 {"data", DataConfig{}},
                 {"training", TrainingConfig{}}};
  config["task"].update(task_kind(task).keys.defaults());
  return config;
}

Json RunConfig::to_json() const {
  return {{"model", model->to_json()}, {"task", task}, {"data", data}, {"training", training}};
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
  RunConfig config{model_config_from_json(json.at("model"), where + ": model", true),
                   json.at("task"),
                   json.at("data").get<DataConfig>(),
                   {}};
  const Json& training_json = json.at("training");
  if (const Json& seed = training_json.at("seed"); !seed.is_number_unsigned() && seed.get<std::int64_t>() < 0) {
    fail_usage("config", "training.seed: expected an integer >= 0, got {}", json_line(seed));
  }
  config.training = training_json.get<TrainingConfig>();
  const TrainingConfig& training = config.training;
  check_positive("batch_size", static_cast<double>(training.batch_size), false);
  check_positive("micro_batch_tokens", static_cast<double>(training.micro_batch_tokens), true);
  check_positive("epochs", training.epochs, false);
  check_positive("steps", static_cast<double>(training.steps), true);
  check_positive("learning_rate", training.learning_rate, true);
  check_positive("weight_decay", training.weight_decay, true);
  check_positive("clip_norm", training.clip_norm, true);
  check_positive("eval_every", static_cast<double>(training.eval_every), true);
  check_positive("save_every", static_cast<double>(training.save_every), false);
  check_positive("log_every", static_cast<double>(training.log_every), false);
  check_positive("early_stopping", static_cast<double>(training.early_stopping), true);
  check_positive("threads", static_cast<double>(training.threads), true);
  if (!(training.warmup_proportion >= 0 && training.warmup_proportion <= 1)) {
    fail_usage("config", "training.warmup_proportion: expected 0 … 1, got {}", training.warmup_proportion);
  }
  require_device_choice("config: training.device", training.device);
  if (training.deterministic != "run" && training.deterministic != "strict") {
    fail_usage("config", "training.deterministic: expected run or strict, got {}{}", training.deterministic,
               suggestion(training.deterministic, {"run", "strict"}));
  }
  if (training.compute != "fp32" && training.compute != "bf16" && training.compute != "auto") {
    fail_usage("config", "training.compute: expected fp32, bf16 or auto, got {}{}", training.compute,
               suggestion(training.compute, {"fp32", "bf16", "auto"}));
  }
  if (training.optimizer != "adamw" && training.optimizer != "lamb") {
    fail_usage("config", "training.optimizer: expected adamw or lamb, got {}{}", training.optimizer,
               suggestion(training.optimizer, {"adamw", "lamb"}));
  }
  config.model->validate();
  return config;
}

RunConfig resolve_config(const std::optional<std::filesystem::path>& file, const Json& options, const Json& model) {
  const Json from_file = file ? read_json_file(*file) : Json::object();
  const std::string where = file ? "config: " + file->string() : "config";
  if (!from_file.is_object()) fail_usage(where, "expected an object with the sections model, task, data, training");
  std::string task;
  for (const Json* source : {&from_file, &options}) {
    const auto section = source->find("task");
    if (section == source->end() || !section->is_object()) continue;
    if (const auto name = section->find("name"); name != section->end() && name->is_string()) task = *name;
  }
  if (task.empty()) fail_usage("config", "no task is named: give --task or a configuration file with task.name");
  Json config = default_config(task);
  if (!model.is_null()) overlay_config(config, Json{{"model", model}}, "config: the checkpoint to start from");
  overlay_config(config, from_file, where);
  overlay_config(config, options, "config: options");
  return run_config_from_json(config, where);
}

}  // namespace etc
