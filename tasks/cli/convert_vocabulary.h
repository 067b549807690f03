// The vocabulary of a checkpoint that is converted: the pieces of the rows of its token table.
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
  std::string name;                            // in the model directory; empty: no vocabulary known
  std::string sha256;                          // of the bytes
  MoreFiles files;                             // of the model directory, `name` among them
  std::unique_ptr<data::Tokenizer> tokenizer;  // null: unknown, or a file with which no data can be prepared

  Json data_section() const;  // of config.json; null without a vocabulary
};

// The vocabulary in a file, as read by load_tokenizer. Throws the same Errors.
ModelVocabulary vocabulary_of(const std::filesystem::path& file);

// The possible file names of a vocabulary beside a checkpoint.
enum class VocabularyNames {
  wordpiece,  // vocab.txt
  any,        // vocab.txt or *.model
  rows        // vocab.json: {piece: row}, RoBERTa's; without its merges.txt it cannot be used for preparation
};

// The checkpoint's own vocabulary in this file. rows: of its token table. Throws UsageError when there are more pieces
// than rows, Error when the file is not a valid vocabulary.
ModelVocabulary own_vocabulary(const std::filesystem::path& file, VocabularyNames names, std::int64_t rows);

// The same for the file in the checkpoint's folder, if there is one. input: the folder, or a file in it. Throws
// UsageError when two files are possible; a file that is not a valid vocabulary is skipped with a warning.
ModelVocabulary vocabulary_beside(const std::filesystem::path& input, VocabularyNames names, std::int64_t rows);

// Warns when no vocabulary is known. option: the one that names it.
void warn_without_vocabulary(const ModelVocabulary& vocabulary, const char* option);

}  // namespace etc::cli
