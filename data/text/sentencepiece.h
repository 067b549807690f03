// The SentencePiece tokenizer: wraps the library and adds the digit-comma rule of the reference.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/text/tokenizer.h"

namespace etc::data {

// Errors, all naming the file: missing, empty, not a SentencePiece model, damaged so that the library fails, crashes or
// hangs (a probe opens it first, data/probe.h), a piece that is not UTF-8.
std::unique_ptr<Tokenizer> load_sentencepiece(const std::filesystem::path& model, const TokenizerOptions& options);

// The text of a sequence of pieces, and the piece that each character comes from (task-hotpotqa 2.3).
struct DetokenizedText {
  std::string text;  // UTF-8: the pieces joined, "▁" as a blank, without the first piece's "▁"
  std::vector<std::int32_t>
      char_to_token;  // one entry per character of the text; a blank belongs to the piece after it
};
DetokenizedText detokenize(const std::vector<std::string>& pieces);

// The text of these ids as the model's own rules write it: unknown text as the model's mark for it (" \u2047 "), pieces of
// bytes as the characters they form, no control pieces. Throws Error if the tokenizer is no SentencePiece model or does not
// have such an id.
std::string text_by_model(const Tokenizer& tokenizer, std::span<const std::int32_t> ids);

}  // namespace etc::data
