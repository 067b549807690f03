// Language models for `etc prepare`: plain text → segments (schema.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/tokenizer.h"
#include "tasks/lm/prepare_config.h"
#include "tasks/prepare/whole_text_preparation.h"

namespace etc::lm {

// A block of lines as pieces.
struct CutLines {
  struct Line {
    std::int64_t end = 0;         // end of its pieces among the ids
    std::int64_t characters = 0;  // those that are part of the text
    bool ends_text = false;       // the text ends after this line
  };
  std::vector<std::int32_t> ids;
  std::vector<Line> lines;
  std::int64_t invalid_bytes = 0;  // left out: not UTF-8
};

class LmPreparation : public prepare::WholeTextPreparation {
 public:
  // Throws Error if the vocabulary has no piece that ends texts ([SEP] in WordPiece, </s> in the others) or no piece for
  // unknown text ([UNK] or <unk>).
  LmPreparation(const PrepareConfig& config, std::unique_ptr<data::Tokenizer> tokenizer);

  const data::Schema& schema() const override;
  const std::string& vocab_sha256() const override { return tokenizer_->vocab_sha256(); }
  Json preprocess_config() const override;

  // Records are blocks of lines.
  std::unique_ptr<data::RecordReader> open_records(data::ByteStream& stream) const override;
  prepare::Counts run(const prepare::RunOptions& options) const override;

  // Whole lines → pieces. A vocabulary of characters has line ends as pieces. Thread-safe.
  CutLines cut(std::string_view text) const;

  const PrepareConfig& config() const { return config_; }
  std::int32_t text_end() const { return text_end_; }
  std::int32_t unknown() const { return unknown_; }  // the piece for text outside the vocabulary

 private:
  void cut_line(std::string_view line, CutLines& cut) const;

  PrepareConfig config_;
  std::unique_ptr<data::Tokenizer> tokenizer_;
  std::int32_t text_end_, unknown_;
  bool keeps_line_ends_;
};

// Settings, maker and learning of characters, for the row of the task in tasks/registry.cpp.
const prepare::PreparationKind& preparation_kind();

}  // namespace etc::lm
