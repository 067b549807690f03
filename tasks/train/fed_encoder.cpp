#include "tasks/train/fed_encoder.h"

#include "data/dataset_info.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/model_files.h"
#include "tasks/registry.h"
#include "tasks/train/carried_memory.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/model.h"
#include "tasks/train/run_config.h"

namespace etc {

bool has_task(const Json& document) {
  return !named_task(document).empty();
}

std::unique_ptr<Task> feeding_task(const Json& document, const EncoderConfig& model, const std::string& task_of_data,
                                   const std::string& where) {
  Json complete = default_config(task_of_data);
  if (has_task(document)) {
    const std::string name = named_task(document);
    if (name != task_of_data) {
      fail(where, "task: the model was trained for {}, the data were prepared for {}", name, task_of_data);
    }
    overlay_config(complete, Json{{"task", document.at("task")}}, "the model's config.json");
  }
  return make_task(complete["task"], model);
}

FedEncoder::FedEncoder(const std::vector<std::string>& files, const std::filesystem::path& folder,
                       bool allow_incomplete)
    : folder_(folder),
      where_(files_text(files)),
      document_(std::make_unique<const Json>(read_model_config(folder))),
      model_(read_encoder_config(folder)),
      task_(feeding_task(*document_, *model_, data::read_dataset_info(files.front()).task, where_)),
      encoder_(model_->make_encoder(parameters_)) {
  if (carries_memory(*model_, default_config(task_->schema().task).at("task"))) {
    fail_usage(where_,
               "the model reads each example with the memory of the one before, and here they are read alone: "
               "expected a model with memory_length 0 (`etc eval` and `etc predict` carry memory)");
  }
  const DataIdentity identity = DataIdentity::of(*document_);
  if (identity.vocab_sha256.empty()) warn_unknown_vocabulary(folder);
  // The id of [MASK], which pre-training feeds for the pieces it hides, is the vocabulary's.
  if (has_task(*document_) && task_->needs_vocabulary() && !identity.vocab_file.empty()) {
    task_->use_vocabulary(Vocabulary(folder / identity.vocab_file, identity).tokenizer);
  }
  if (has_task(*document_)) task_->add_parameters(parameters_);
  reader_ = open_dataset(files, task_->schema(), {identity.vocab_sha256, allow_incomplete});
}

void FedEncoder::load(Device device, InferenceTypes types) {
  map_parameters(folder_ / "model.safetensors", parameters_, has_task(*document_) ? Match::exact : Match::encoder);
  parameters_.to(device);
  encoder_->release_kernels(types);
}

EncoderInput FedEncoder::feed(Tape& tape, Examples examples) const {
  EncoderInput input = task_->feed(examples, where_);
  if (has_task(*document_)) task_->add_to_embeddings(tape, examples, input);
  return input;
}

}  // namespace etc
