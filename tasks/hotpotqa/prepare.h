// HotpotQA for `etc prepare`: record → example, or the faults that prevent it (task-hotpotqa 2, 8.4, 9).
#pragma once

#include <memory>

#include "data/text/tokenizer.h"
#include "tasks/hotpotqa/prepare_config.h"
#include "tasks/prepare/json_preparation.h"

namespace etc::hotpotqa {

class HotpotqaPreparation : public prepare::JsonPreparation {
 public:
  HotpotqaPreparation(const PrepareConfig& config, std::unique_ptr<data::Tokenizer> tokenizer)
      : config_(config), tokenizer_(std::move(tokenizer)) {}

  const data::Schema& schema() const override;
  data::RecordLayout layout() const override { return data::RecordLayout::array; }
  const std::string& vocab_sha256() const override { return tokenizer_->vocab_sha256(); }
  Json preprocess_config() const override;
  prepare::Converted convert(const data::JsonRecord& record) const override;

 private:
  PrepareConfig config_;
  std::unique_ptr<data::Tokenizer> tokenizer_;
};

// Settings and maker, for the row of the task in tasks/registry.cpp.
const prepare::PreparationKind& preparation_kind();

}  // namespace etc::hotpotqa
