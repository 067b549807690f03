// The vocabulary of a checkpoint that is converted: whose pieces the rows of its token table are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "data/text/tokenizer.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/model_files.h"

namespace etc::cli {

// A model directory keeps the file and its SHA-256, so that data prepared with another vocabulary are refused.
struct ModelVocabulary {
  std::string name;                            // in the model directory; empty: no vocabulary is known
  std::string sha256;                          // of the bytes
  MoreFiles files;                             // of the model directory, `name` among them
  std::unique_ptr<data::Tokenizer> tokenizer;  // null: nothing known, or a file that no data can be prepared with

  Json data_section() const;  // of config.json; null without a vocabulary
};

// A vocabulary by its file, as load_tokenizer takes it. Throws Error as that does.
ModelVocabulary vocabulary_of(const std::filesystem::path& file);

// Which names a vocabulary may have beside a checkpoint.
enum class VocabularyNames {
  wordpiece,  // vocab.txt
  any,        // vocab.txt or *.model
  rows        // vocab.json: {piece: row}, RoBERTa's; without its merges.txt no data can be prepared with it
};

// The checkpoint's own vocabulary in this file. rows: of its token table. Throws UsageError when there are more pieces
// than rows, Error when the file is no such vocabulary.
ModelVocabulary own_vocabulary(const std::filesystem::path& file, VocabularyNames names, std::int64_t rows);

// The same of the file in the checkpoint's folder, if there is one. input: the folder, or a file in it. Throws
// UsageError when two files could be meant; one that is no vocabulary is passed over with a warning.
ModelVocabulary vocabulary_beside(const std::filesystem::path& input, VocabularyNames names, std::int64_t rows);

// Warns when no vocabulary is known.
void warn_without_vocabulary(const ModelVocabulary& vocabulary);

}  // namespace etc::cli
