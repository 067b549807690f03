// Exports a vocabulary as tokenizer.json, which the package `tokenizers` (and thereby `transformers`) loads.
#pragma once

#include <string>

#include "data/text/tokenizer.h"

namespace etc::data {

// The file's content for a WordPiece or byte-level BPE tokenizer, with the same words and pieces; like
// Tokenizer::encode, it neither adds nor recognises special tokens. Empty for other kinds: the format cannot express
// SentencePiece's digit-comma rule (etc-core 11.2).
std::string tokenizer_json(const Tokenizer& tokenizer);

}  // namespace etc::data
