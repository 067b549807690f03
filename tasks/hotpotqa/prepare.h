// HotpotQA for `etc prepare`: record → example, or the faults that prevent it (task-hotpotqa 2, 8.4, 9).
#pragma once

#include "tasks/hotpotqa/prepare_config.h"
#include "tasks/text/tokenized_preparation.h"

namespace etc::hotpotqa {

class HotpotqaPreparation : public text::TokenizedPreparation<PrepareConfig, data::RecordLayout::array> {
 public:
  using TokenizedPreparation::TokenizedPreparation;

  const data::Schema& schema() const override;
  Json preprocess_config() const override;
  const char* id_field() const override { return "_id"; }
  // A number out of range in another member does not matter.
  const data::UnreadMembers& unread_members() const override;
  prepare::Converted convert(const data::JsonRecord& record) const override;
};

// Settings and maker, for the row of the task in tasks/registry.cpp.
const prepare::PreparationKind& preparation_kind();

}  // namespace etc::hotpotqa
