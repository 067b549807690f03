// Building blocks of generated records, shared by several data sets: filler sentences, and names, some of which
// training records ask for more often than others.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "data/sample/word_source.h"

namespace etc::data {

// Tokens of a sentence "A is ruled by X.", and of a filler sentence.
inline constexpr std::int64_t kFactTokens = 6;
inline constexpr std::int64_t kFillerTokens = 7;

// Filler such as "The harbour there is very old.", to make texts longer; a thing and a trait as in it ("harbour", "old");
// and all words of filler sentences.
std::string filler_sentence(Choices& choices);
std::string filler_thing(Choices& choices);
std::string filler_trait(Choices& choices);
void add_filler_words(std::set<std::string>& words);

// Names to ask for in addition to those that one record holds. Only a few, because a model must learn to distinguish
// any two names, and every pair must occur in enough records.
inline constexpr std::size_t kSpareNames = 2;

// A name's number j = 0 … count-1, drawn uniformly, or with weight 1/(j+1)^exponent (1: Zipf's law), so that a few names
// are frequent.
std::size_t even_index(std::size_t count, Choices& choices);
std::size_t popular_index(std::size_t count, Choices& choices, int exponent = 1);

// `count` of these words: the one at `first`, then others in random order.
std::vector<std::string> some_of(std::vector<std::string> words, std::size_t first, std::size_t count,
                                 Choices& choices);

// Writes DIR/vocab.txt (WordPiece, special tokens at BERT's places) of these words, DIR/train.json and DIR/dev.json,
// each under a temporary name first.
void write_sample_files(const std::filesystem::path& folder, const std::set<std::string>& words,
                        const std::string& train, const std::string& dev);

}  // namespace etc::data
