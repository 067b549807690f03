#include "tasks/train/model.h"

#include <algorithm>

#include "data/dataset_info.h"
#include "etc_core/autograd/functions.h"
#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "etc_core/nn/dense_config.h"
#include "etc_core/nn/resize_positions.h"
#include "tasks/registry.h"
#include "tasks/train/carried_memory.h"
#include "tasks/train/run_config.h"

namespace etc {

namespace fs = std::filesystem;

namespace {

const fs::path kTensorFile = "model.safetensors";

// Whether a checkpoint may be of this task. A converted checkpoint names no task. Tensors with the same name mean
// different things in different tasks ("output_weights" in WikiHop and OpenKP), so a checkpoint that names another task
// does not count.
bool may_be_same_task(const Json& config, const Json& task_section) {
  const std::string name = named_task(config);
  return name.empty() || name == task_name(task_section);
}

const FieldList<DataIdentity>& identity_fields() {
  using D = DataIdentity;
  static const FieldList<D> kFields{
      {"vocab_sha256", &D::vocab_sha256, "of the vocabulary that the data were prepared with"},
      {"preprocess_config", &D::preprocess_config, "the settings of their preparation"},
      {"vocab_file", &D::vocab_file, "the vocabulary's file beside the model"},
      {"content_sha256", &D::content_sha256, "of the training data"},
  };
  return kFields;
}

// Whether the file's tensors have exactly the model's names: the same kind of head.
bool same_tensors(const fs::path& file, const ParameterSet& parameters) {
  const TensorFileReader reader(file);
  return reader.entries().size() == parameters.all().size() &&
         std::all_of(parameters.all().begin(), parameters.all().end(),
                     [&](const auto& parameter) { return reader.has(parameter->name); });
}

// The rows of the checkpoint's tables of relative positions, for a model with another clip.
RowChoice position_rows(const EncoderConfig& from, const EncoderConfig& to) {
  const auto* const source = dynamic_cast<const DenseConfig*>(&from);
  const auto* const own = dynamic_cast<const DenseConfig*>(&to);
  if (source == nullptr || own == nullptr) {
    fail_usage("resize_relative",
               "expected dense encoders, whose tables of relative positions have a clip, got a checkpoint of kind {} "
               "for a model of kind {}",
               model_kind_of(from.to_json()), model_kind_of(to.to_json()));
  }
  return [rows = resized_rows(*source, *own)](const Parameter& parameter) {
    return is_position_table(parameter.name) ? rows : std::vector<std::int64_t>();
  };
}

// The value of a key of section `model`, for messages; attention by_radius is shown as what it resolves to.
std::string setting_text(const Json& model, const char* key) {
  const Json& value = model.at(key);
  if (value == "by_radius") return model.at("local_radius") == 0 ? "full" : "window";
  return value.is_string() ? value.get<std::string>() : json_line(value);
}

// Warns of settings under which the same weights compute something else although tensors may have the same shapes
// (Shaw's tables are as large as those of Huang's fourth method).
void warn_of_other_settings(const EncoderConfig& source, const EncoderConfig& own) {
  const Json theirs = source.to_json(), ours = own.to_json();
  for (const char* key : {"relative_positions", "attention", "causal", "hidden_act"}) {
    if (!theirs.contains(key) || !ours.contains(key)) continue;
    const std::string expected = setting_text(theirs, key), got = setting_text(ours, key);
    if (expected != got) log::warn("{}: {}, but the checkpoint was trained with: {}", key, got, expected);
  }
}

// Describes what is taken from a checkpoint with another head: the encoder, and these parameters of the head.
std::string taken_text(const ParameterSet& parameters, const std::vector<std::string>& of_head) {
  if (of_head.empty()) return "the encoder; this task's head starts fresh";
  std::vector<std::string> fresh;
  for (const auto& parameter : parameters.all()) {
    const bool taken = is_encoder_tensor(parameter->name) ||
                       std::find(of_head.begin(), of_head.end(), parameter->name) != of_head.end();
    if (!taken) fresh.push_back(parameter->name);
  }
  return fmt::format("the encoder, {}; fresh: {}", fmt::join(of_head, ", "),
                     fresh.empty() ? "nothing" : fmt::format("{}", fmt::join(fresh, ", ")));
}

}  // namespace

TaskModel::TaskModel(const EncoderConfig& model_config, const Json& section)
    : config(model_config),
      task_section(section),
      task(make_task(section, model_config)),
      encoder(model_config.make_encoder(parameters)) {
  task->add_parameters(parameters);
}

HeadOutput TaskModel::forward(Tape& tape, Examples examples, EncoderInput& input, const ForwardOptions& options) {
  HeadOutput logits = forward_in_place(tape, examples, input, options);
  for (Var& logit : logits) logit = on_device(tape, logit, Device::cpu);
  return logits;
}

HeadOutput TaskModel::forward_in_place(Tape& tape, Examples examples, EncoderInput& input,
                                       const ForwardOptions& options) {
  task->add_to_embeddings(tape, examples, input);
  if (memory != nullptr) memory->give(*task, examples, input);
  const EncoderStates states = encoder->forward(tape, input, options);
  if (memory != nullptr) memory->take(examples, states.memory);
  return task->head(tape, examples, states, input, options);
}

DataIdentity DataIdentity::of(const data::DatasetInfo& info) {
  return {info.vocab_sha256, info.preprocess_config, "", info.content_sha256};
}

DataIdentity DataIdentity::of(const Json& document) {
  return identity_fields().read(document.value("data", Json::object()), "config", "data.");
}

Json DataIdentity::to_json() const {
  Json json = identity_fields().to_json(*this);
  if (vocab_file.empty()) json.erase("vocab_file");
  if (content_sha256.empty()) json.erase("content_sha256");
  return json;
}

void DataIdentity::require_vocabulary(const std::string& sha256, const fs::path& file) const {
  if (vocab_sha256.empty() || sha256 == vocab_sha256) return;
  fail(file.string(), "another vocabulary than that of the data: expected SHA-256 {}, got {}", vocab_sha256, sha256);
}

Vocabulary::Vocabulary(const fs::path& file, const DataIdentity& data)
    : path(file), tokenizer(data::load_tokenizer(file)) {
  data.require_vocabulary(tokenizer->vocab_sha256(), path);
}

Json checkpoint_config(const TaskModel& model, const DataIdentity& data) {
  return {{"model", model.config->to_json()}, {"task", model.task_section}, {"data", data.to_json()}};
}

LoadedModel open_model(const fs::path& folder, const ModelUse& use) {
  const Json config = read_model_config(folder);
  const std::string task_of_model = named_task(config);
  if (task_of_model.empty()) {
    fail(folder.string(),
         "the model has no task: expected a checkpoint of `etc train`, got an encoder alone "
         "(train a head with --init-from)");
  }
  // The section is completed with defaults, so that checkpoints older than a key still load.
  Json complete = default_config(task_of_model);
  overlay_config(complete, Json{{"task", config["task"]}}, folder.string());
  for (const auto& [key, value] : use.task.items()) {
    if (complete["task"].contains(key)) continue;
    fail_usage(folder.string(), "{} is no option of a model of task {}", Field{.name = key}.option_name(),
               task_of_model);
  }
  overlay_config(complete, Json{{"task", use.task}}, "options");
  LoadedModel loaded{std::make_unique<TaskModel>(*read_encoder_config(folder), complete["task"]),
                     DataIdentity::of(config), use.vocab};
  Task& task = *loaded.model->task;
  if (loaded.vocab.empty() && !loaded.data.vocab_file.empty()) loaded.vocab = folder / loaded.data.vocab_file;
  if (loaded.vocab.empty() && task.needs_vocabulary()) {
    fail_usage(folder.string(), "the model was trained without --vocab: give the vocabulary of its data with --vocab");
  }
  if (loaded.data.vocab_sha256.empty()) warn_unknown_vocabulary(folder);
  if (!loaded.vocab.empty()) task.use_vocabulary(Vocabulary(loaded.vocab, loaded.data).tokenizer);
  return loaded;
}

LoadedModel load_model(const fs::path& folder, const ModelUse& use) {
  LoadedModel loaded = open_model(folder, use);
  load_weights(folder, *loaded.model);
  return loaded;
}

void load_weights(const fs::path& folder, TaskModel& model) {
  map_parameters(folder / kTensorFile, model.parameters);
}

void require_vocabulary_of(const fs::path& checkpoint, const DataIdentity& data) {
  const DataIdentity source = DataIdentity::of(read_model_config(checkpoint));
  if (source.vocab_sha256.empty()) return warn_unknown_vocabulary(checkpoint);
  if (source.vocab_sha256 == data.vocab_sha256) return;
  fail("train",
       "--init-from {}: made with another vocabulary than the training data: SHA-256 {}, that of the data {} (prepare "
       "the data with the model's vocabulary{})",
       checkpoint.string(), source.vocab_sha256, data.vocab_sha256,
       source.vocab_file.empty() ? "" : ", " + (checkpoint / source.vocab_file).string());
}

void init_from_checkpoint(const fs::path& folder, TaskModel& model, bool resize_relative) {
  const Json config = read_model_config(folder);
  const ModelConfig source = read_encoder_config(folder);
  warn_of_other_settings(*source, *model.config);  // first, because it explains differing shapes
  const bool whole =
      may_be_same_task(config, model.task_section) && same_tensors(folder / kTensorFile, model.parameters);
  load_parameters(folder / kTensorFile, model.parameters, whole ? Match::exact : Match::encoder,
                  resize_relative ? position_rows(*source, *model.config) : RowChoice());
  const auto taken =
      whole ? std::vector<std::string>() : load_pretraining_heads(folder / kTensorFile, model.parameters);
  log::info("weights of {}: {}", folder.string(), whole ? "encoder and head" : taken_text(model.parameters, taken));
  if (residual_text(*source) == residual_text(*model.config)) {
    log::info("residual scores: {}, as the checkpoint was trained with", residual_text(*model.config));
  } else {
    log::warn("residual scores: {}, but the checkpoint was trained with: {}", residual_text(*model.config),
              residual_text(*source));
  }
}

void warn_unknown_vocabulary(const fs::path& folder) {
  log::warn("{}: the model does not say which vocabulary it has, so it is not compared with that of the data",
            folder.string());
}

std::string residual_text(const EncoderConfig& config) {
  if (!config.use_residual_attention) return "off";
  std::string text = config.use_running_mean ? "running mean" : "running sum";
  if (config.residual_attention_types.size() < config.attention_types().size()) {
    text += fmt::format(" of {}", fmt::join(config.residual_attention_types, ", "));
  }
  return text;
}

}  // namespace etc
