// The tokenizer for a translation vocabulary file (subword_vocab.h): byte-pair pieces or whole words.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/text/tokenizer.h"

namespace etc::data {

// Throws Error naming file and line on any fault. The tokenizer is of kind "bpe" or "word"; a piece that the dictionary
// lacks, and a word of the text that is spelled like a special piece, becomes <unk>.
std::unique_ptr<Tokenizer> load_subword_tokenizer(const std::filesystem::path& vocab);

}  // namespace etc::data
