// Base class of preparations that tokenise a record's words with the data's vocabulary.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "data/text/tokenizer.h"
#include "tasks/prepare/json_preparation.h"

namespace etc::text {

// The vocabulary's tokeniser. Throws UsageError unless `wanted`, the setting `tokenizer`, is empty or its kind; Error
// if the file is not a vocabulary, or is of a kind that only translation or lm reads.
std::unique_ptr<data::Tokenizer> load_tokenizer(const std::filesystem::path& vocab, const std::string& wanted,
                                                const data::TokenizerOptions& options);

// Config: the task's settings. kLayout: the layout of its records in a file.
template <typename Config, data::RecordLayout kLayout>
class TokenizedPreparation : public prepare::JsonPreparation {
 public:
  TokenizedPreparation(const Config& config, std::unique_ptr<data::Tokenizer> tokenizer)
      : config_(config), tokenizer_(std::move(tokenizer)) {}

  data::RecordLayout layout() const final { return kLayout; }
  const std::string& vocab_sha256() const final { return tokenizer_->vocab_sha256(); }

 protected:
  // The settings as stored in a data set: kind and case are those of the actual tokeniser.
  Json stored_settings(const FieldList<Config>& settings) const {
    Json stored = settings.to_json(config_);
    stored.update({{"tokenizer", tokenizer_->kind()}, {"do_lower_case", tokenizer_->lower_case()}});
    return stored;
  }

  Config config_;
  std::unique_ptr<data::Tokenizer> tokenizer_;
};

}  // namespace etc::text
