// A model folder loaded once, with all that raw records need, which then answers one record after the other: what the
// commands, and whoever keeps a model in memory, have in common.
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
#include "etc_core/base/not_copied.h"
#include "tasks/inference/answer.h"
#include "tasks/prepare/preparation.h"
#include "tasks/train/inference_fit.h"
#include "tasks/train/model.h"

namespace etc {

// What a task does with a person's own documents (document_model.h).
enum class DocumentUse { none, ask, keyphrases };

struct RecordModelOptions {
  std::filesystem::path model;  // a model folder, or a run, whose best checkpoint is taken
  std::filesystem::path vocab;  // in the place of the vocabulary that the folder keeps; empty: that one
  std::string splitter;         // "punkt:DIR" in the place of the tables that it keeps; empty: those
  Json task = Json::object();   // keys of section task in the place of the checkpoint's
  std::string device = "cpu";
  std::string compute = "fp32", scores = "int32";
  std::int64_t memory_limit = 0;  // bytes; 0: none
  // What the model's task must do with documents; none: answers to raw records are enough.
  DocumentUse use = DocumentUse::none;
};

// Whether the model of this folder has answers to single raw records: it has a task's head, and the task has them.
bool answers_records(const std::filesystem::path& folder);

class RecordModel : NotCopied {
 public:
  // where: what messages begin with, "etc ask". Throws UsageError on a model of a task without such a use, or without
  // answers, before anything of it is read that only models with answers have; else as open_model(),
  // make_raw_preparation() and load_weights() do.
  RecordModel(std::string where, const RecordModelOptions& options);

  const std::string& task() const { return task_; }
  const data::Tokenizer& tokenizer() const { return *tokenizer_; }  // of the model's vocabulary
  const prepare::Preparation& preparation() const { return *preparation_; }
  Running& running() { return *running_; }
  Device device() const { return device_; }
  const std::string& vocab_sha256() const { return loaded_.data.vocab_sha256; }

  // The examples of one raw record. what: names it in messages. Throws Error listing what is wrong with it.
  std::vector<data::LoadedExample> prepare(const Json& record, const std::string& what) const;

  // The same of the record as its text: one JSON value. Throws InputFault where it is no JSON. Thread-safe, as prepare().
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
