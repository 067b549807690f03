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

struct RecordModelOptions {
  std::filesystem::path model;  // a model folder, or a run, whose best checkpoint is taken
  std::filesystem::path vocab;  // in the place of the vocabulary that the folder keeps; empty: that one
  std::string splitter;         // "punkt:DIR" in the place of the tables that it keeps; empty: those
  Json task = Json::object();   // keys of section task in the place of the checkpoint's
  std::string device = "cpu";
  std::string compute = "fp32";
  std::int64_t memory_limit = 0;  // bytes; 0: none
};

class RecordModel : NotCopied {
 public:
  // where: what messages begin with, "etc ask". Throws as open_model(), make_raw_preparation() and load_weights() do.
  RecordModel(std::string where, const RecordModelOptions& options);

  const std::string& task() const { return task_; }
  const data::Tokenizer& tokenizer() const { return *tokenizer_; }  // of the model's vocabulary
  const prepare::Preparation& preparation() const { return *preparation_; }
  Running& running() { return *running_; }
  Device device() const { return device_; }

  // The examples of one raw record. what: names it in messages. Throws Error listing what is wrong with it.
  std::vector<data::LoadedExample> prepare(const Json& record, const std::string& what) const;

  // The answer to a record's examples (tasks/ANSWERS.md). Throws UsageError where the task has none.
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
