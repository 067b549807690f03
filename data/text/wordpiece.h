// The WordPiece tokenizer of BERT: basic tokenizer, then the greedy cut of every word.
#pragma once

#include <filesystem>
#include <memory>

#include "data/text/tokenizer.h"

namespace etc::data {

// Errors: those of WordPieceVocab, and a missing file.
std::unique_ptr<Tokenizer> load_wordpiece(const std::filesystem::path& vocab, bool lower_case);

}  // namespace etc::data
