// The SentencePiece tokenizer (the library behind this door), with the digit-comma rule of the reference.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/text/tokenizer.h"

namespace etc::data {

// Errors, all naming the file: missing, empty, no SentencePiece model, damaged in a way that makes the library fail,
// crash or hang (it is opened by a probe first, data/probe.h), a piece that is not UTF-8.
std::unique_ptr<Tokenizer> load_sentencepiece(const std::filesystem::path& model, const TokenizerOptions& options);

// The text that pieces stand for, and which piece each of its characters comes from (task-hotpotqa 2.3).
struct DetokenizedText {
  std::string text;  // UTF-8: the pieces joined, "▁" as a blank, without the first piece's "▁"
  std::vector<std::int32_t>
      char_to_token;  // one entry per character of the text; a blank belongs to the piece after it
};
DetokenizedText detokenize(const std::vector<std::string>& pieces);

}  // namespace etc::data
