// Vocabularies of a few words, for tests of preparation.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>

#include "data/text/tokenizer.h"
#include "tests/support/folders.h"

namespace etc::test {

// "[unused<first>]" … "[unused<end - 1>]", one a line.
inline std::string unused_entries(int first, int end) {
  std::string lines;
  for (int i = first; i < end; ++i) lines += "[unused" + std::to_string(i) + "]\n";
  return lines;
}

inline std::string vocabulary_entries(std::initializer_list<const char*> words) {
  std::string lines;
  for (const char* word : words) lines += std::string(word) + "\n";
  return lines;
}

// The WordPiece tokenizer of a vocabulary's text.
inline std::unique_ptr<data::Tokenizer> tokenizer_of(const std::string& vocabulary) {
  const TemporaryFolder folder;
  write_file(folder / "vocab.txt", vocabulary);
  return data::load_tokenizer(folder / "vocab.txt");
}

}  // namespace etc::test
