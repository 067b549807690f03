// A task's model in memory: one set of parameters under the encoder and the task's head; and as a checkpoint folder.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "data/dataset.h"
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
  // Of the pass that runs: what every forward pass reads of earlier segments, and where it leaves its own. Null: none.
  CarriedMemory* memory = nullptr;

  // Parameters without values yet. task_section: complete, with name.
  TaskModel(const EncoderConfig& config, const Json& task_section);

  // Logits of a micro-batch: the task's part of the embeddings (put into `input`), encoder, head, all
  // where the parameters are. Logits come to the host, where losses are computed and answers decoded.
  HeadOutput forward(Tape& tape, Examples examples, EncoderInput& input, const ForwardOptions& options);

  // The same, logits left where they were computed.
  HeadOutput forward_in_place(Tape& tape, Examples examples, EncoderInput& input, const ForwardOptions& options);
};

// What a checkpoint's config.json says beside the model: which data it was made from.
struct DataIdentity {
  std::string vocab_sha256;
  Json preprocess_config;
  std::string vocab_file;           // the vocabulary's name in the checkpoint folder; empty: not kept
  std::string content_sha256 = {};  // of the training data; empty: not known

  static DataIdentity of(const data::DatasetInfo& info);
  static DataIdentity of(const Json& document);  // a checkpoint's config.json; empty when it says nothing
  Json to_json() const;
};

// The vocabulary file of a data set. Throws Error when its SHA-256 is not that of the data.
struct Vocabulary {
  std::filesystem::path path;
  std::shared_ptr<const data::Tokenizer> tokenizer;

  Vocabulary(const std::filesystem::path& path, const std::string& expected_sha256);
};

// config.json of a checkpoint.
Json checkpoint_config(const TaskModel& model, const DataIdentity& data);

// A trained model for evaluation and prediction. Throws Error when the folder holds no model or one without a task's
// head.
struct LoadedModel {
  std::unique_ptr<TaskModel> model;
  DataIdentity data;
  std::filesystem::path vocab;  // given or kept in the folder; empty: neither
};

// How a model is used, beside what it was trained with.
struct ModelUse {
  std::filesystem::path vocab;  // instead of the one kept in the folder; empty: that one
  Json task = Json::object();   // keys of section task in the place of the checkpoint's
};
LoadedModel load_model(const std::filesystem::path& folder, const ModelUse& use = {});

// The same in two steps: all but the weights, then these.
LoadedModel open_model(const std::filesystem::path& folder, const ModelUse& use = {});
void load_weights(const std::filesystem::path& folder, TaskModel& model);

// Takes weights for a new run: everything when the checkpoint has the same head, else the encoder's and those of heads of
// pre-training that both have; what is not taken keeps its fresh values. Says so in the log, how the residual scores of
// both compare, and which of relative_positions, attention, causal and hidden_act differ. resize_relative: tables of relative positions take the rows of the checkpoint's clip
// (nn/resize_positions.h).
void init_from_checkpoint(const std::filesystem::path& folder, TaskModel& model, bool resize_relative = false);

// Throws Error when the checkpoint was made with another vocabulary than the data to train on. One that does not know
// its vocabulary causes a warning.
void require_vocabulary_of(const std::filesystem::path& checkpoint, const DataIdentity& data);

// Says in the log that data of any vocabulary are taken, because the model in this folder names none.
void warn_unknown_vocabulary(const std::filesystem::path& folder);

// "off", "running sum" or "running mean", and the types if not all.
std::string residual_text(const EncoderConfig& config);

}  // namespace etc
