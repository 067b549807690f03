// Learns a WordPiece vocabulary from plain text, so that a language without one can start.
//
// Pieces grow from single characters by merging, again and again, the two neighbours that stand together most often
// (Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword Units", 2016), where a character
// inside a word is another piece ("##a") than one that starts a word ("a"). Of equally frequent pairs the one whose
// spelling comes first is merged, so that equal texts give equal vocabularies, whatever the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/text/punkt_tables.h"
#include "data/text/punkt_trainer.h"

namespace etc::data {

struct WordpieceTraining {
  std::int64_t size = 30522;            // pieces in all
  bool lower_case = true;               // as the tokenizer will be used
  std::int64_t most_characters = 1000;  // different ones; words with a rarer one are left out
  std::int64_t least_count = 2;         // occurrences of a pair that is merged
};

// How often each word of a text occurs; words are those of the basic tokenizer.
using WordCounts = std::unordered_map<std::string, std::int64_t, StringViewHash, std::equal_to<>>;

// All threads count. Memory: the different words, at most about kMostWords: where there are more, the rarest so far are
// forgotten, at places that depend on the text alone. Words that a tokenizer would not cut (longer than 200 characters)
// are left out.
inline constexpr std::size_t kMostWords = std::size_t{1} << 22;
WordCounts count_words(const TextSource& texts, bool lower_case, std::size_t most_words = kMostWords);

// The vocabulary's pieces: BERT's special ones at BERT's places ([PAD], [unused0] … [unused98], [UNK], [CLS], [SEP],
// [MASK]), the characters by their frequency, as the start of a word and, where they were seen there, inside; then merged
// pieces in the order of their merges. Fewer than `size` when no pair occurs least_count times any more. Throws Error
// when there is no word, UsageError when the special pieces and characters alone are more than `size`.
std::vector<std::string> learn_wordpiece(const WordCounts& words, const WordpieceTraining& training);

}  // namespace etc::data
