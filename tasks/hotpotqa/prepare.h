// HotpotQA for `etc prepare`: record → example, or the faults that prevent it (task-hotpotqa 2, 8.4, 9).
#pragma once

#include <filesystem>
#include <memory>

#include "data/text/tokenizer.h"
#include "tasks/hotpotqa/prepare_config.h"
#include "tasks/prepare/preparation.h"

namespace etc::hotpotqa {

class HotpotqaPreparation : public prepare::Preparation {
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

// Loads the vocabulary as the settings say; see PreparationKind::make.
std::unique_ptr<prepare::Preparation> make_preparation(const Json& settings, const std::filesystem::path& vocab,
                                                       bool labels_required);

}  // namespace etc::hotpotqa
