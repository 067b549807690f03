// What generated records of several data sets are made of: sentences that say nothing, and names, some of which
// training records ask for more often than for others.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "data/sample/word_source.h"

namespace etc::data {

// Tokens of a sentence "A is ruled by X.", and of one that says nothing.
inline constexpr std::int64_t kFactTokens = 6;
inline constexpr std::int64_t kFillerTokens = 7;

// "The harbour there is very old.", to make texts longer; all words such sentences can hold.
std::string filler_sentence(Choices& choices);
void add_filler_words(std::set<std::string>& words);

// More names of what is asked for than one record holds. Few: a model has to tell any two of them apart, and every pair
// must stand in enough records.
inline constexpr std::size_t kSpareNames = 2;

// A name's number j = 0 … count-1, drawn evenly, or with weight 1/(j+1) as in Zipf's law: a few names are on
// everybody's lips.
std::size_t even_index(std::size_t count, Choices& choices);
std::size_t popular_index(std::size_t count, Choices& choices);

// `count` of these words: the one at `first`, then others in random order.
std::vector<std::string> some_of(std::vector<std::string> words, std::size_t first, std::size_t count,
                                 Choices& choices);

// Writes DIR/vocab.txt (WordPiece, special tokens at BERT's places) of these words, DIR/train.json and DIR/dev.json,
// each under a temporary name first.
void write_sample_files(const std::filesystem::path& folder, const std::set<std::string>& words,
                        const std::string& train, const std::string& dev);

}  // namespace etc::data
