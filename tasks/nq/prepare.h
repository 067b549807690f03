// Natural Questions for `etc prepare`: record → windows and gold, or the faults that prevent it (task-nq 2, 8.3, 9).
#pragma once

#include <filesystem>
#include <memory>

#include "tasks/nq/prepare_config.h"
#include "tasks/nq/record.h"
#include "tasks/text/tokenized_preparation.h"

namespace etc::nq {

class NqPreparation : public text::TokenizedPreparation<PrepareConfig, data::RecordLayout::lines> {
 public:
  using TokenizedPreparation::TokenizedPreparation;

  const data::Schema& schema() const override;
  Json preprocess_config() const override;
  prepare::Converted convert(const data::JsonRecord& record) const override;
  const data::UnreadMembers& unread_members() const override;
  const data::FlatLists& flat_lists() const override;
  const char* out_of_range_code(const std::string& field) const override {
    return field == "example_id" ? "id_range" : "wrong_type";
  }
};

// Loads the vocabulary as the settings say; see PreparationKind::make.
std::unique_ptr<prepare::Preparation> make_preparation(const Json& settings, const std::filesystem::path& vocab,
                                                       prepare::Labels labels);

// Settings and maker, for the row of the task in tasks/registry.cpp.
const prepare::PreparationKind& preparation_kind();

}  // namespace etc::nq
