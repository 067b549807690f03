// WikiHop for `etc prepare`: record → example, or the faults that prevent it (task-wikihop 2, 8.4, 9).
#pragma once

#include <filesystem>
#include <memory>

#include "data/text/sentence_splitter.h"
#include "data/text/tokenizer.h"
#include "tasks/prepare/preparation.h"
#include "tasks/wikihop/prepare_config.h"

namespace etc::wikihop {

class WikihopPreparation : public prepare::Preparation {
 public:
  // Throws UsageError when tokenizer and configuration do not go together.
  WikihopPreparation(const PrepareConfig& config, std::unique_ptr<data::Tokenizer> tokenizer,
                     std::unique_ptr<data::SentenceSplitter> splitter);

  const data::Schema& schema() const override;
  data::RecordLayout layout() const override { return data::RecordLayout::array; }
  const std::string& vocab_sha256() const override { return tokenizer_->vocab_sha256(); }
  Json preprocess_config() const override;
  prepare::Converted convert(const data::JsonRecord& record) const override;

 private:
  PrepareConfig config_;
  std::unique_ptr<data::Tokenizer> tokenizer_;
  std::unique_ptr<data::SentenceSplitter> splitter_;
};

// Loads vocabulary and splitter as the settings say; see PreparationKind::make.
std::unique_ptr<prepare::Preparation> make_preparation(const Json& settings, const std::filesystem::path& vocab,
                                                       bool labels_required);

// The documents of a raw file; PreparationKind::texts.
void texts_to_split(const std::filesystem::path& input, const std::function<void(std::string_view)>& visit);

}  // namespace etc::wikihop
