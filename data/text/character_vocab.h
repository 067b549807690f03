// Characters as a vocabulary: every character of a text is a piece, line ends and blanks too, so that nothing of the text
// is lost.
//
//   #characters
//   U+0020          a character a line, by its code point; ids 0 and 1 are </s> and <unk>, the first line's is 2
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

// The characters of a vocabulary file, in order. Throws Error "<where>: line <n>: …" on a first line that is another, a
// line that is no code point of a character, one that comes twice, and where there is none.
std::u32string parse_character_vocab(std::string_view text, const std::string& where);

std::string character_vocab_text(std::u32string_view characters);

// The `most` most frequent characters (0: all), of equally frequent ones the lower code point first. counts: of
// characters, each as its bytes.
std::u32string most_frequent_characters(const WordCounts& counts, std::int64_t most);

// A tokenizer of kind "characters", one id for each code point; bytes that are not UTF-8 are left out. Throws Error as
// parse_character_vocab.
std::unique_ptr<Tokenizer> load_characters(const std::filesystem::path& vocab);

}  // namespace etc::data
