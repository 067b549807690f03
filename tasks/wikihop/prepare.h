// WikiHop for `etc prepare`: record → example, or the faults that prevent it (task-wikihop 2, 8.4, 9).
#pragma once

#include <memory>

#include "data/text/sentence_splitter.h"
#include "data/text/tokenizer.h"
#include "tasks/prepare/json_preparation.h"
#include "tasks/wikihop/prepare_config.h"

namespace etc::wikihop {

class WikihopPreparation : public prepare::JsonPreparation {
 public:
  // Throws UsageError when tokenizer and configuration do not go together.
  WikihopPreparation(const PrepareConfig& config, std::unique_ptr<data::Tokenizer> tokenizer,
                     std::unique_ptr<data::SentenceSplitter> splitter);

  const data::Schema& schema() const override;
  data::RecordLayout layout() const override { return data::RecordLayout::array; }
  const std::string& vocab_sha256() const override { return tokenizer_->vocab_sha256(); }
  Json preprocess_config() const override;
  prepare::Converted convert(const data::JsonRecord& record) const override;

 private:
  PrepareConfig config_;
  std::unique_ptr<data::Tokenizer> tokenizer_;
  std::unique_ptr<data::SentenceSplitter> splitter_;
};

// Settings and maker, for the row of the task in tasks/registry.cpp.
const prepare::PreparationKind& preparation_kind();

}  // namespace etc::wikihop
