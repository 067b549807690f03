// SQuAD for `etc prepare`: question → windows and gold, or the faults that prevent it (dense-transformer 5.1, 5.2, 8).
#pragma once

#include <filesystem>
#include <memory>

#include "tasks/squad/prepare_config.h"
#include "tasks/text/tokenized_preparation.h"

namespace etc::squad {

class SquadPreparation : public text::TokenizedPreparation<PrepareConfig, data::RecordLayout::questions> {
 public:
  using TokenizedPreparation::TokenizedPreparation;

  const data::Schema& schema() const override;
  Json preprocess_config() const override;
  prepare::Converted convert(const data::JsonRecord& record) const override;
  // A number out of range in another member does not matter.
  const data::UnreadMembers& unread_members() const override;
};

// Loads the vocabulary as the settings say; see PreparationKind::make. Throws UsageError on a SentencePiece model:
// answers are located and written by words, and its pieces may cross word boundaries.
std::unique_ptr<prepare::Preparation> make_preparation(const Json& settings, const std::filesystem::path& vocab,
                                                       prepare::Labels labels);

// Settings and maker, for the row of the task in tasks/registry.cpp.
const prepare::PreparationKind& preparation_kind();

}  // namespace etc::squad
