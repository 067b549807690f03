// A vocabulary as the file tokenizer.json, which the package `tokenizers` (and by it `transformers`) loads.
#pragma once

#include <string>

#include "data/text/tokenizer.h"

namespace etc::data {

// The file of a WordPiece or byte-level BPE tokenizer: the same words, the same pieces, and no special tokens added to or
// found in a text, as Tokenizer::encode has it. Empty for other kinds: SentencePiece's digit-comma rule (etc-core 11.2)
// has no words there.
std::string tokenizer_json(const Tokenizer& tokenizer);

}  // namespace etc::data
