// An encoder of a model folder and the prepared data it is fed with, whether or not the folder has a task's head: used
// by `etc encode` and `etc analyze`.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "etc_core/base/json_fwd.h"
#include "etc_core/base/not_copied.h"
#include "etc_core/nn/encoder.h"
#include "etc_core/nn/parameters.h"
#include "tasks/task.h"

namespace etc {

// Whether a model's config.json names a task.
bool has_task(const Json& document);

// The task that feeds the data: the model's own task, or the data's task at its defaults when the model is an encoder
// alone. Throws Error naming `where` when the model was trained for another task.
std::unique_ptr<Task> feeding_task(const Json& document, const EncoderConfig& model, const std::string& task_of_data,
                                   const std::string& where);

class FedEncoder : NotCopied {
 public:
  // Opens model and data; parameters have no values yet. The task gets the vocabulary that the folder keeps, if it needs
  // one. Throws Error as the reader and the task do, and when the data are of another task or vocabulary, incomplete
  // (unless allowed) or empty.
  FedEncoder(const std::vector<std::string>& files, const std::filesystem::path& folder, bool allow_incomplete);

  // Reads the weights and packs them for inference on a device.
  void load(Device device, InferenceTypes types);

  // Input of the examples, with what the task adds to the embeddings.
  EncoderInput feed(Tape& tape, Examples examples) const;

  const std::string& where() const { return where_; }  // names the data in messages
  const Json& document() const { return *document_; }  // the model's config.json
  const EncoderConfig& model() const { return *model_; }
  const Task& task() const { return *task_; }
  Encoder& encoder() const { return *encoder_; }
  const ParameterSet& parameters() const { return parameters_; }
  const std::shared_ptr<const data::DatasetReader>& reader() const { return reader_; }

 private:
  std::filesystem::path folder_;
  std::string where_;
  std::unique_ptr<const Json> document_;
  ModelConfig model_;
  std::unique_ptr<Task> task_;
  ParameterSet parameters_;
  std::unique_ptr<Encoder> encoder_;
  std::shared_ptr<const data::DatasetReader> reader_;
};

}  // namespace etc
