// GLUE for `etc prepare`: a row of one of its files → an example, or the faults that prevent it (dense-transformer 4.1,
// 4.2, 8).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/text/tokenizer.h"
#include "tasks/glue/row.h"
#include "tasks/prepare/preparation.h"
#include "tasks/text/settings.h"

namespace etc::glue {

enum class Layout { tsv, csv };

struct PrepareConfig : text::CommonSettings {
  DataSet data_set = DataSet::cola;
  Layout layout = Layout::tsv;
  std::int64_t seq_len = 128;  // M

  RowForm row_form() const {
    return {data_set, layout == Layout::csv ? data::TableForm::commas : data::TableForm::tabs, labels_required};
  }
};

const FieldList<PrepareConfig>& prepare_settings();

// "CLS a SEP" or "CLS a SEP b SEP" with its segments, at most `most` tokens; `most` has room for CLS and a pair's
// separators. A pair is truncated one last piece at a time from the longer text, from b if they are equally long. If b has
// no pieces left, it is treated as absent.
struct Sequence {
  std::vector<std::int64_t> ids, segments;
  std::int64_t pieces = 0, kept = 0;  // of the texts, before truncation and after
};
Sequence sequence_of(const Row& row, const data::Tokenizer& tokenizer, std::int64_t most);

class GluePreparation : public prepare::Preparation {
 public:
  GluePreparation(const PrepareConfig& config, std::unique_ptr<data::Tokenizer> tokenizer)
      : config_(config), tokenizer_(std::move(tokenizer)) {}

  const data::Schema& schema() const override;
  const std::string& vocab_sha256() const override { return tokenizer_->vocab_sha256(); }
  Json preprocess_config() const override;
  std::unique_ptr<data::RecordReader> open_records(data::ByteStream& stream) const override;
  prepare::Converted convert_record(data::RecordSlice& record) const override;
  // {"sentence": text}: the data set's columns of text as members, and optionally "id".
  std::string text_of_json(std::string json, const std::string& what) const override;

 private:
  PrepareConfig config_;
  std::unique_ptr<data::Tokenizer> tokenizer_;
};

// Loads the vocabulary as the settings say; see PreparationKind::make.
std::unique_ptr<prepare::Preparation> make_preparation(const Json& settings, const std::filesystem::path& vocab,
                                                       prepare::Labels labels);

// Settings and maker, for the row of the task in tasks/registry.cpp.
const prepare::PreparationKind& preparation_kind();

}  // namespace etc::glue
