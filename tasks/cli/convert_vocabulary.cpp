#include "tasks/cli/convert_vocabulary.h"

#include <algorithm>
#include <vector>

#include "data/text/byte_bpe.h"
#include "data/text/sha256.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/log.h"
#include "etc_core/checkpoint/convert/bert/vocabulary.h"
#include "tasks/train/model.h"

namespace etc::cli {

namespace fs = std::filesystem;

namespace {

bool fits(const fs::path& file, VocabularyNames names) {
  if (!fs::is_regular_file(file)) return false;
  if (names == VocabularyNames::rows) return file.filename() == "vocab.json";
  return file.filename() == "vocab.txt" || (names == VocabularyNames::any && file.extension() == ".model");
}

// Files that could be the vocabulary, by name.
std::vector<fs::path> candidates(const fs::path& folder, VocabularyNames names) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (fits(entry.path(), names)) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

ModelVocabulary rows_of(const fs::path& file, std::int64_t rows) {
  convert::read_source_vocabulary(file, rows);  // throws an error that describes the fault
  if (fs::exists(data::merges_beside(file))) return vocabulary_of(file);
  ModelVocabulary vocabulary;
  vocabulary.name = file.filename();
  const std::string bytes = read_file(file);
  vocabulary.sha256 = data::sha256_hex(bytes);
  vocabulary.files[vocabulary.name] = bytes;
  return vocabulary;
}

}  // namespace

Json ModelVocabulary::data_section() const {
  if (name.empty()) return nullptr;
  return {{"vocab_sha256", sha256}, {"vocab_file", name}};
}

ModelVocabulary vocabulary_of(const fs::path& file) {
  ModelVocabulary vocabulary;
  vocabulary.tokenizer = data::load_tokenizer(file);
  const auto files = data::vocabulary_files(*vocabulary.tokenizer, file);
  vocabulary.name = files.front().first;
  vocabulary.sha256 = vocabulary.tokenizer->vocab_sha256();
  for (const auto& [name, path] : files) vocabulary.files[name] = read_file(path);
  return vocabulary;
}

ModelVocabulary own_vocabulary(const fs::path& file, VocabularyNames names, std::int64_t rows) {
  ModelVocabulary vocabulary = names == VocabularyNames::rows ? rows_of(file, rows) : vocabulary_of(file);
  if (vocabulary.tokenizer == nullptr) {
    log::warn(
        "etc convert: {}: without {} beside it no data can be prepared with this vocabulary, so the model takes none",
        file.string(), data::merges_beside(file).filename().string());
  } else if (vocabulary.tokenizer->vocab_size() > rows) {
    fail_usage("etc convert",
               "{}: expected at most {} pieces, the rows of the checkpoint's token table, got {} (it belongs to "
               "another model: replace it by the checkpoint's own, or remove it)",
               file.string(), rows, vocabulary.tokenizer->vocab_size());
  }
  return vocabulary;
}

ModelVocabulary vocabulary_beside(const fs::path& input, VocabularyNames names, std::int64_t rows) {
  fs::path folder = fs::is_directory(input) ? input : input.parent_path();
  if (folder.empty()) folder = ".";
  const std::vector<fs::path> found = candidates(folder, names);
  if (found.empty()) return {};
  if (found.size() > 1) {
    fail_usage("etc convert", "{} and {} are both beside the checkpoint: choose its vocabulary with --vocab",
               found[0].string(), found[1].string());
  }
  try {
    ModelVocabulary vocabulary = own_vocabulary(found.front(), names, rows);
    log::info("etc convert: vocabulary: {}, SHA-256 {}", found.front().string(), vocabulary.sha256);
    return vocabulary;
  } catch (const UsageError&) {
    throw;  // wrong size
  } catch (const Error& error) {
    log::warn("etc convert: {} (it is not taken for the checkpoint's vocabulary)", error.what());
    return {};
  }
}

void warn_without_vocabulary(const ModelVocabulary& vocabulary, const char* option) {
  if (!vocabulary.name.empty()) return;
  log::warn(
      "etc convert: the checkpoint's vocabulary is not known, so data of any vocabulary will be taken for the model "
      "(put it beside the checkpoint, or give {})",
      option);
}

}  // namespace etc::cli
