// A task's model in memory: one set of parameters under the encoder and the task's head; and as a checkpoint folder.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "data/dataset_info.h"
#include "data/text/tokenizer.h"
#include "etc_core/base/json.h"
#include "etc_core/base/not_copied.h"
#include "etc_core/nn/encoder.h"
#include "etc_core/nn/parameters.h"
#include "tasks/task.h"

namespace etc {

class CarriedMemory;  // carried_memory.h

struct TaskModel : NotCopied {
  ModelConfig config;
  Json task_section;
  std::unique_ptr<Task> task;
  ParameterSet parameters;
  std::unique_ptr<Encoder> encoder;
  // For the current pass: memory of earlier segments that every forward pass reads, and where it stores its own. Null:
  // none.
  CarriedMemory* memory = nullptr;

  // Parameters without values yet. task_section: complete, with name.
  TaskModel(const EncoderConfig& config, const Json& task_section);

  // Logits of a micro-batch: the task's part of the embeddings (put into `input`), encoder, head, all on the device of
  // the parameters. Logits are copied to the host, where losses are computed and answers decoded.
  HeadOutput forward(Tape& tape, Examples examples, EncoderInput& input, const ForwardOptions& options);

  // The same, but the logits stay where they were computed.
  HeadOutput forward_in_place(Tape& tape, Examples examples, EncoderInput& input, const ForwardOptions& options);
};

// What a checkpoint's config.json records beside the model: which data it was made from.
struct DataIdentity {
  std::string vocab_sha256;  // empty: not stated, as in a folder made by hand; any vocabulary is taken then
  Json preprocess_config;
  std::string vocab_file;           // the vocabulary's name in the checkpoint folder; empty: not kept
  std::string content_sha256 = {};  // of the training data; empty: not known

  static DataIdentity of(const data::DatasetInfo& info);
  static DataIdentity of(const Json& document);  // a checkpoint's config.json; empty when it has none of it
  Json to_json() const;
  // Throws Error when the vocabulary in `file`, which has this SHA-256, is another.
  void require_vocabulary(const std::string& sha256, const std::filesystem::path& file) const;
};

// The vocabulary file of a data set. Throws the Error of require_vocabulary().
struct Vocabulary {
  std::filesystem::path path;
  std::shared_ptr<const data::Tokenizer> tokenizer;

  Vocabulary(const std::filesystem::path& path, const DataIdentity& data);
};

// config.json of a checkpoint.
Json checkpoint_config(const TaskModel& model, const DataIdentity& data);

// A trained model for evaluation and prediction. Throws Error when the folder holds no model or one without a task's
// head.
struct LoadedModel {
  std::unique_ptr<TaskModel> model;
  DataIdentity data;
  std::filesystem::path vocab;  // given, or kept in the folder; empty: neither
};

// How a loaded model is used, where that differs from its training.
struct ModelUse {
  std::filesystem::path vocab;  // instead of the one kept in the folder; empty: that one
  Json task = Json::object();   // keys of section task that replace the checkpoint's
};
LoadedModel load_model(const std::filesystem::path& folder, const ModelUse& use = {});

// The same in two steps: first everything but the weights, then the weights.
LoadedModel open_model(const std::filesystem::path& folder, const ModelUse& use = {});
void load_weights(const std::filesystem::path& folder, TaskModel& model);

// Initialises a new run from a checkpoint: all weights if the checkpoint has the same head; otherwise the encoder's and
// those of pre-training heads that both have; other weights keep their fresh values. Logs this, how the residual scores
// of both compare, and which of relative_positions, attention, causal and hidden_act differ. resize_relative: converts
// tables of relative positions from the checkpoint's clip to the model's (nn/resize_positions.h).
void init_from_checkpoint(const std::filesystem::path& folder, TaskModel& model, bool resize_relative = false);

// Throws Error when the checkpoint was made with another vocabulary than the training data. Warns if the checkpoint
// does not name its vocabulary.
void require_vocabulary_of(const std::filesystem::path& checkpoint, const DataIdentity& data);

// Warns that data of any vocabulary are accepted because the model in this folder names none.
void warn_unknown_vocabulary(const std::filesystem::path& folder);

// "off", "running sum" or "running mean", and the types if not all.
std::string residual_text(const EncoderConfig& config);

}  // namespace etc
