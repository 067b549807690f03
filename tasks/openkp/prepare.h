// OpenKP for `etc prepare`: record → example, or the faults that prevent it (task-openkp 2, 8.3, 9).
#pragma once

#include "tasks/openkp/features.h"
#include "tasks/openkp/prepare_config.h"
#include "tasks/text/tokenized_preparation.h"

namespace etc::openkp {

class OpenkpPreparation : public text::TokenizedPreparation<PrepareConfig, data::RecordLayout::lines> {
 public:
  using TokenizedPreparation::TokenizedPreparation;

  const data::Schema& schema() const override;
  Json preprocess_config() const override;
  prepare::Converted convert(const data::JsonRecord& record) const override;
  // A number out of range in another member does not matter.
  const data::UnreadMembers& unread_members() const override;

  // With `dedup` one page per url is kept: the one with the most valid key phrases, counted before they are cut to
  // max_key_phrases; among equals the first.
  const char* unique_field() const override { return config_.dedup ? "url" : nullptr; }
  std::optional<prepare::Candidate> candidate(const data::JsonRecord& record) const override;
};

// The key phrases a page is trained on: with `dedup` its valid ones, at most max_key_phrases, each as one text; otherwise
// those of the record. Reports the phrases that are dropped.
std::vector<Phrase> chosen_phrases(const Page& page, const PrepareConfig& config, prepare::FaultList& faults);

// Visual features of the kept elements; empty with fixed blocks.
data::Example visual_features(const Page& page, std::int64_t kept_elements);

// Settings and maker, for the row of the task in tasks/registry.cpp.
const prepare::PreparationKind& preparation_kind();

}  // namespace etc::openkp
