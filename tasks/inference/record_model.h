// A model folder loaded once, with everything needed for raw records, which then answers one record after the other.
// Used by the commands and by programs that keep a model in memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/text/tokenizer.h"
#include "etc_core/base/compute_type.h"
#include "etc_core/base/device.h"
#include "etc_core/base/json.h"
#include "etc_core/base/not_copied.h"
#include "tasks/inference/answer.h"
#include "tasks/prepare/preparation.h"
#include "tasks/train/inference_fit.h"
#include "tasks/train/model.h"

namespace etc {

// The use that a task makes of a user's own documents (document_model.h).
enum class DocumentUse { none, ask, keyphrases };

struct RecordModelOptions {
  std::filesystem::path model;  // a model folder, or a run, which stands for its best checkpoint
  std::filesystem::path vocab;  // instead of the vocabulary kept in the folder; empty: that one
  std::string splitter;         // "punkt:DIR" instead of the tables kept there; empty: those
  Json task = Json::object();   // keys of section task that replace the checkpoint's
  std::string device = "cpu";
  std::string compute = "fp32", scores = "int32";
  std::int64_t memory_limit = 0;  // bytes; 0: none
  // The use of documents that the model's task must support; none: answers to raw records suffice.
  DocumentUse use = DocumentUse::none;
};

// Whether the model in this folder can answer single raw records: it has a task's head, and the task supports answers.
bool answers_records(const std::filesystem::path& folder);

class RecordModel : NotCopied {
 public:
  // where: the beginning of messages, "etc ask". Throws UsageError if the model's task does not support this use or has
  // no answers, before anything is read that only models with answers have; otherwise throws as open_model(),
  // make_raw_preparation() and load_weights() do.
  RecordModel(std::string where, const RecordModelOptions& options);

  const std::string& task() const { return task_; }
  const data::Tokenizer& tokenizer() const { return *tokenizer_; }  // of the model's vocabulary
  const prepare::Preparation& preparation() const { return *preparation_; }
  Running& running() { return *running_; }
  Device device() const { return device_; }
  const std::string& vocab_sha256() const { return loaded_.data.vocab_sha256; }

  // The examples of one raw record. what: names it in messages. Throws Error listing its faults.
  std::vector<data::LoadedExample> prepare(const Json& record, const std::string& what) const;

  // The same for a record as JSON text. Throws InputFault if it is not JSON. Thread-safe, as prepare().
  std::vector<data::LoadedExample> prepare_text(std::string text, const std::string& what) const;

  // The answer to a record's examples (tasks/ANSWERS.md).
  Json answer(Examples examples, const std::string& what);

 private:
  std::string where_, task_;
  Device device_ = Device::cpu;
  LoadedModel loaded_;
  std::unique_ptr<prepare::Preparation> preparation_;
  std::unique_ptr<data::Tokenizer> tokenizer_;
  std::optional<InferenceFit> fit_;
  std::optional<Running> running_;
};

}  // namespace etc
