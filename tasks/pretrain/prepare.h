// Pre-training for `etc prepare`: plain text → examples, for which the whole text is needed (pretraining 1, 2).
#pragma once

#include <memory>
#include <string>

#include "data/text/tokenizer.h"
#include "tasks/prepare/whole_text_preparation.h"
#include "tasks/pretrain/example_maker.h"
#include "tasks/pretrain/prepare_config.h"
#include "tasks/pretrain/text_cutter.h"

namespace etc::pretrain {

class PretrainPreparation : public prepare::WholeTextPreparation {
 public:
  // splitter: null if lines are sentences. Throws Error naming a special piece that the vocabulary lacks.
  PretrainPreparation(const PrepareConfig& config, std::shared_ptr<const data::Tokenizer> tokenizer,
                      std::unique_ptr<data::SentenceSplitter> splitter);

  const data::Schema& schema() const override;
  const std::string& vocab_sha256() const override { return tokenizer_->vocab_sha256(); }
  Json preprocess_config() const override;

  // Records are blocks of lines, or lines of JSON.
  std::unique_ptr<data::RecordReader> open_records(data::ByteStream& stream) const override;
  prepare::Counts run(const prepare::RunOptions& options) const override;
  // The part of the temporary files that is held in memory; a piece has about as many bytes in them as in the text.
  std::int64_t kept_bytes(const prepare::InputSize& inputs) const override;

  // The sentences of a record. Invalid JSON is a fault, but still begins a document. Thread-safe.
  CutText cut(data::RecordSlice& record, prepare::FaultList& faults) const;

  const PrepareConfig& config() const { return config_; }
  const ExampleMaker& maker() const { return maker_; }

 private:
  PrepareConfig config_;
  std::shared_ptr<const data::Tokenizer> tokenizer_;
  TextCutter cutter_;
  ExampleMaker maker_;
};

// Settings and maker, for the row of the task in tasks/registry.cpp.
const prepare::PreparationKind& preparation_kind();

}  // namespace etc::pretrain
