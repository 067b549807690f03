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

// A name's number j = 0 … count-1, drawn with weight 1/(j + top_rank): Zipf's law, a few names are on everybody's lips.
std::size_t popular_index(std::size_t count, std::int64_t top_rank, Choices& choices);

// `count` of these words: the one at `first`, then others in random order.
std::vector<std::string> some_of(std::vector<std::string> words, std::size_t first, std::size_t count,
                                 Choices& choices);

// Writes DIR/vocab.txt (WordPiece, special tokens at BERT's places) of these words, DIR/train.json and DIR/dev.json,
// each under a temporary name first.
void write_sample_files(const std::filesystem::path& folder, const std::set<std::string>& words,
                        const std::string& train, const std::string& dev);

}  // namespace etc::data
