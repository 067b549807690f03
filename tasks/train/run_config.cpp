#include "tasks/train/run_config.h"

#include "data/text/tokenizer.h"
#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "etc_core/base/words.h"
#include "etc_core/nn/backends.h"
#include "etc_core/optim/optimizer.h"
#include "etc_core/optim/schedule.h"
#include "tasks/registry.h"
#include "tasks/train/model_folder.h"
#include "tasks/train/save_schedule.h"

namespace etc {

namespace {

// Whether the configuration has this key; it lacks keys of other tasks and kinds of encoders.
bool has_key(const Json& config, const ConfigKey& key) {
  return config.contains(key.section) && config[key.section].contains(key.field.name);
}

// Throws UsageError for a key of section task that only other tasks have; their names are the best hint.
void refuse_key_of_other_tasks(const Json& config, const std::string& key, const std::string& where) {
  std::vector<std::string> others;
  for (const TaskEntry& entry : task_entries()) {
    if (entry.task.keys.find(key) != nullptr) others.push_back(entry.name);
  }
  if (others.empty()) return;
  fail_usage(where, "key task.{} belongs to task {}, and this run is for task {} (--task)", key,
             fmt::join(others, ", "), named_task(config));
}

// The key as declared for the given configuration, or a UsageError that names the nearest one.
const ConfigKey& find_key(const Json& config, const std::string& section, const std::string& key,
                          const std::string& where) {
  std::vector<std::string> paths;
  for (const ConfigKey& entry : config_keys()) {
    const bool known = has_key(config, entry), named = entry.section == section && entry.field.name == key;
    if (known && named) return entry;
    if (known) paths.push_back(entry.path());
    if (named && !entry.kinds.empty()) {
      fail_usage(where, "{}.{} is a key of models of kind {}, and this one is of kind {} ({})", section, key,
                 alternatives(entry.kind_names()), model_kind_of(config.at(section)),
                 model_kind_fields().begin()->option_name());
    }
  }
  if (section == "task") refuse_key_of_other_tasks(config, key, where);
  fail_usage(where, "unknown key {}.{}{}", section, key, suggestion(section + "." + key, paths));
}

// A member of the section's struct: from the options, else from the file; empty if neither has it.
template <typename Struct>
std::string first_of(const Json& options, const Json& file, const char* section, const FieldList<Struct>& fields,
                     std::string Struct::*member, const std::string& where) {
  for (const Json* config : {&options, &file}) {
    const auto found = config->find(section);
    if (found == config->end() || !found->is_object()) continue;
    const std::string path = std::string(section) + ".";
    const Struct read = fields.read_unchecked(*found, config == &file ? where : "config: options", path);
    if (!(read.*member).empty()) return read.*member;
  }
  return "";
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
      {"splitter", &C::splitter,
       "punkt:FOLDER: the tables the data were cut with; kept with the model, which reads raw records with them"},
      {"allow_incomplete", &C::allow_incomplete, kAllowIncompleteHelp},
  };
  return kFields;
}

const FieldList<TrainingConfig>& training_fields() {
  using C = TrainingConfig;
  const FieldRule from_0{.least = 0}, from_1{.least = 1}, share{.least = 0, .most = 1};
  const FieldRule below_1{.least = 0, .below = 1};
  static const FieldList<C> kFields{
      {"batch_size", &C::batch_size, "examples per optimiser step", from_1},
      {"tokens_per_batch", &C::tokens_per_batch,
       "instead of batch_size: long and global (source and target) tokens per optimiser step at most, examples of like "
       "lengths together; 0: by examples",
       from_0},
      {"padded_batches", &C::padded_batches,
       "with tokens_per_batch: the budget counts what a padding program computes, examples times the longest"},
      {"micro_batch_tokens", &C::micro_batch_tokens, "long and global tokens in memory at once; 0: the whole batch",
       from_0},
      {"epochs", &C::epochs, "passes over the training data", {.above = 0}, kMayGrow},
      {"steps", &C::steps, "optimiser steps; 0: those of the epochs", from_0, kMayGrow},
      {"optimizer",
       &C::optimizer,
       "adamw, lamb, or radam as translation uses it",
       {.words = {"adamw", "lamb", "radam"}}},
      {"adam_beta_1", &C::adam_beta_1, "decay of the gradients' mean", below_1},
      {"adam_beta_2", &C::adam_beta_2, "decay of the mean of their squares; translation takes 0.98", below_1},
      {"adam_epsilon",
       &C::adam_epsilon,
       "what is added to the root of the mean square; translation takes 1e-8",
       {.least = kLeastEpsilon, .below = 1}},
      {"learning_rate", &C::learning_rate, "peak learning rate; of noam what the formula is multiplied with", from_0},
      {"schedule",
       &C::schedule,
       "how the rate rises and falls; those of translation are all but bert",
       {.words = schedule_names()}},
      {"warmup_proportion", &C::warmup_proportion, "share of the steps in which the rate rises to its peak", share},
      {"warmup_steps", &C::warmup_steps, "the same as a number of steps; 0: by warmup_proportion", from_0},
      {"start_learning_rate", &C::start_learning_rate, "of inverse_sqrt and linear: the rate of the first step",
       from_0},
      {"end_learning_rate", &C::end_learning_rate, "of linear and polynomial: the rate at the last step", from_0},
      {"decay_power", &C::decay_power, "of bert and polynomial: the power of the share of steps left", {.above = 0}},
      {"weight_decay", &C::weight_decay,
       "decay of kernels and tables: of all but LayerNorm, layer_norm, bias, rezero_alpha and admin_omega", from_0},
      {"clip_norm", &C::clip_norm, "largest norm of the whole gradient; 0: not clipped", from_0},
      {"eval_every", &C::eval_every, "steps between evaluations; 0: once per epoch", from_0},
      {"eval_batches", &C::eval_batches,
       "evaluations while training read only the first examples, those of so many batches of batch_size; 0: all",
       from_0},
      {"save_every", &C::save_every, "steps, or time (15min), between checkpoints to resume from", {}, kMayChange},
      {"keep_last", &C::keep_last,
       "so many model folders kept/step_N stay beside last and best, the newest, for `etc convert --average`; 0: none",
       from_0, kMayChange},
      {"keep_every", &C::keep_every, "with keep_last: steps between them; 0: once per epoch", from_0, kMayChange},
      {"log_every", &C::log_every, "steps between lines of metrics.jsonl", from_1, kMayChange},
      {"early_stopping", &C::early_stopping, "stop after this many evaluations without a better result; 0: never",
       from_0, kMayChange},
      {"seed", &C::seed, "seed of fresh weights, order of examples and dropout"},
      {"threads",
       &C::threads,
       "threads to compute with; 0: all processors",
       {.least = 0, .most = static_cast<double>(kMostThreads)},
       kMayChange},
      {"shard_moments",
       &C::shard_moments,
       "of several processes (mpirun), each keeps its part of the optimiser's moments: less memory, the same bits",
       {},
       kMayChange},
      {"bucket_bytes", &C::bucket_bytes,
       "of several processes: bytes of gradient that travel together during the backward pass; 0: all at its end",
       from_0, kMayChange},
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
      {"resize_relative", &C::resize_relative,
       "with init_from: tables of relative positions of another relative_clip are cut, or extended by their last rows"},
  };
  return kFields;
}

Json option_value(const Field& key, const std::vector<std::string>& words) {
  if (key.kind == FieldKind::texts) return words;
  if (key.kind == FieldKind::boolean && words.empty()) return true;
  const std::string word = words.size() == 1 ? words[0] : "";
  if ((key.kind == FieldKind::text || key.kind == FieldKind::word) && words.size() == 1) return word;
  if (key.kind == FieldKind::optional_integer && word == "none") return nullptr;
  Json value = try_parse_json(word);  // numbers and true/false are spelled as in JSON
  if (key.kind == FieldKind::json && value.is_discarded() && !word.empty()) return word;  // text without its quotes
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

Json default_config(const std::string& task, const std::string& kind) {
  Json config = {{"model", model_kind_fields().to_json({kind})},
                 {"task", section_of_task(task)},
                 {"data", data_fields().defaults()},
                 {"training", training_fields().defaults()}};
  config["model"].update(model_kind(kind, "config: model").defaults->fields().defaults());
  config["task"].update(task_kind(task).keys.defaults());
  config["training"].update(task_kind(task).training);
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
  constexpr std::string_view kPunkt = "punkt:";
  if (config.data.splitter.starts_with(kPunkt))
    config.data.splitter = std::string(kPunkt) + absolute_path(config.data.splitter.substr(kPunkt.size()));
  config.training.init_from = absolute_path(config.training.init_from);
  return config;
}

void require_paths_in_utf8(const RunConfig& config) {
  const RunConfig absolute = with_absolute_paths(config);
  const auto require = [](const std::string& path, const char* key) {
    if (!data::invalid_utf8(path)) return;
    fail_usage("config", "{}: expected a path in UTF-8, which a run can keep, got {} (rename it, or make a link to it)",
               key, path);
  };
  for (const std::string& file : absolute.data.train) require(file, "data.train");
  for (const std::string& file : absolute.data.eval) require(file, "data.eval");
  require(absolute.data.vocab, "data.vocab");
  require(absolute.data.splitter, "data.splitter");
  require(absolute.training.init_from, "training.init_from");
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
  SaveSchedule(config.training.save_every);  // report an error here rather than during the run
  if (config.training.resize_relative && config.training.init_from.empty()) {
    fail_usage("config",
               "training.resize_relative: expected init_from beside it, whose tables are to be cut or extended");
  }
  return config;
}

namespace {

// If the model's vocab_size is not given, it is the size of the run's vocabulary.
void take_vocabulary_size(Json& config) {
  Json& size = config["model"]["vocab_size"];
  if (size != 0) return;
  const auto vocab = config["data"]["vocab"].get<std::string>();
  if (vocab.empty()) {
    fail_usage("config",
               "model.vocab_size: expected the vocabulary of the data (--vocab FILE) or its size (--vocab-size N){}",
               config["data"]["train"].empty() ? ", and prepared data to train on (--data FILE)" : "");
  }
  size = data::load_tokenizer(vocab)->vocab_size();
}

}  // namespace

RunConfig resolve_config(const std::optional<std::filesystem::path>& file, const Json& options,
                         const CheckpointModel& checkpoint) {
  const Json from_file = file ? read_json_file(*file) : Json::object();
  const std::string where = file ? "config: " + file->string() : "config";
  if (!from_file.is_object()) fail_usage(where, "expected an object with the sections model, task, data, training");
  const auto first = [&](const char* section, const auto& fields, auto member) {
    return first_of(options, from_file, section, fields, member, where);
  };
  std::string task = named_task(options);
  if (task.empty()) task = named_task(from_file);
  if (task.empty()) fail_usage("config", "no task is named: give --task or a configuration file with task.name");
  std::string kind = first("model", model_kind_fields(), &ModelKindName::kind);
  std::string start = first("training", training_fields(), &TrainingConfig::init_from);
  Json started = Json::object();
  if (checkpoint && !start.empty()) {
    start = model_folder(start).string();
    started = {{"model", checkpoint(start)}};
    const std::string trained = model_kind_of(started["model"]);
    if (kind.empty()) kind = trained;
    if (kind != trained) {
      fail_usage("config", "model.kind: the checkpoint {} is of kind {}, and the run is to be of kind {}", start,
                 trained, kind);
    }
  }
  Json config = default_config(task, kind.empty() ? model_kinds().front().name : kind);
  overlay_config(config, started, "config: the checkpoint to start from");
  overlay_config(config, from_file, where);
  overlay_config(config, options, "config: options");
  config["training"]["init_from"] = start;
  take_vocabulary_size(config);
  RunConfig result = run_config_from_json(config, where);
  require_paths_in_utf8(result);
  warn_of_unread_keys(*result.model);
  return result;
}

}  // namespace etc
