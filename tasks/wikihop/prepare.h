// WikiHop for `etc prepare`: record → example, or the faults that prevent it (task-wikihop 2, 8.4, 9).
#pragma once

#include <memory>

#include "data/text/sentence_splitter.h"
#include "tasks/text/tokenized_preparation.h"
#include "tasks/wikihop/prepare_config.h"

namespace etc::wikihop {

class WikihopPreparation : public text::TokenizedPreparation<PrepareConfig, data::RecordLayout::array> {
 public:
  // Throws UsageError when tokenizer and configuration are incompatible.
  WikihopPreparation(const PrepareConfig& config, std::unique_ptr<data::Tokenizer> tokenizer,
                     std::unique_ptr<data::SentenceSplitter> splitter);

  const data::Schema& schema() const override;
  Json preprocess_config() const override;
  prepare::Converted convert(const data::JsonRecord& record) const override;
  // A number out of range in another member does not matter.
  const data::UnreadMembers& unread_members() const override;

 private:
  std::unique_ptr<data::SentenceSplitter> splitter_;
};

// Settings and maker, for the row of the task in tasks/registry.cpp.
const prepare::PreparationKind& preparation_kind();

}  // namespace etc::wikihop
