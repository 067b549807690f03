// Translation for `etc prepare`: pairs of lines → source and target ids (translation 4, 14).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/tokenizer.h"
#include "tasks/prepare/preparation.h"
#include "tasks/prepare/run.h"
#include "tasks/translation/prepare_config.h"
#include "tasks/translation/vocabulary.h"

namespace etc::translation {

class TranslationPreparation : public prepare::Preparation, public prepare::WholeRun {
 public:
  // labels: required for train and dev, where pairs with an empty or too long side are dropped. For a test split all pairs
  // are kept, and the target may be missing.
  TranslationPreparation(const PrepareConfig& config, std::unique_ptr<data::Tokenizer> tokenizer,
                         prepare::Labels labels);

  const data::Schema& schema() const override;
  const std::string& vocab_sha256() const override { return tokenizer_->vocab_sha256(); }
  Json preprocess_config() const override;
  const prepare::WholeRun* whole_run() const override { return this; }

  // Reads a source text only; run() reads both texts.
  std::unique_ptr<data::RecordReader> open_records(data::ByteStream& stream) const override;
  // record: of data::ParallelLines, a pair or a source line only.
  prepare::Converted convert_record(data::RecordSlice& record) const override;

  // RunOptions::inputs are the source texts, RunOptions::targets the target texts.
  prepare::Counts run(const prepare::RunOptions& options) const override;

 private:
  struct Side;
  Side read_side(std::string_view line, const char* field, prepare::FaultList& faults) const;
  void filter(Side& source, const std::optional<Side>& target, prepare::FaultList& faults) const;

  PrepareConfig config_;
  std::unique_ptr<data::Tokenizer> tokenizer_;
  SpecialIds special_;
  bool labels_required_;
};

// Settings, maker and learner, for the row of the task in tasks/registry.cpp.
const prepare::PreparationKind& preparation_kind();

}  // namespace etc::translation
