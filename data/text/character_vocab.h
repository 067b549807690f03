// A character vocabulary: every character of a text is a piece, including line ends and blanks, so that no part of the
// text is lost.
//
//   #characters
//   U+0020          one character per line, by its code point; ids 0 and 1 are </s> and <unk>, the first line's is 2
//   U+0065
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "data/text/tokenizer.h"
#include "data/text/word_counts.h"

namespace etc::data {

inline constexpr std::array<std::string_view, 2> kCharacterSpecials = {"</s>", "<unk>"};

// The characters of a vocabulary file, in order. Throws Error "<where>: line <n>: …" on a wrong first line, a line that
// is not the code point of a character, a repeated character, and a file without characters.
std::u32string parse_character_vocab(std::string_view text, const std::string& where);

std::string character_vocab_text(std::u32string_view characters);

// The `most` most frequent characters (0: all), among equally frequent ones the lower code point first. counts: keys
// are characters, as UTF-8.
std::u32string most_frequent_characters(const WordCounts& counts, std::int64_t most);

// A tokenizer of kind "characters", one id for each code point; bytes that are not UTF-8 are left out. Throws Error
// like parse_character_vocab.
std::unique_ptr<Tokenizer> load_characters(const std::filesystem::path& vocab);

}  // namespace etc::data
