// Learns a WordPiece vocabulary from plain text, for languages without a published one.
//
// Pieces grow from single characters by merging the most frequent pair of neighbours (pair_merger.h). A character
// inside a word is a different piece ("##a") than one that starts a word ("a"). Among equally frequent pairs the one
// with the lowest spelling is merged, so that equal texts give equal vocabularies, whatever the number of threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/text/word_counts.h"

namespace etc::data {

struct WordpieceTraining {
  std::int64_t size = 30522;            // pieces in all
  bool lower_case = true;               // must match the tokenizer's use
  std::int64_t most_characters = 1000;  // distinct; words with a rarer one are left out
  std::int64_t least_count = 2;         // minimum of occurrences of a pair to be merged
};

// The vocabulary's pieces: BERT's special ones at BERT's places ([PAD], [unused0] … [unused98], [UNK], [CLS], [SEP],
// [MASK]), the characters by frequency, as the start of a word and, if seen there, inside a word; then merged pieces in
// the order of their merges. Fewer than `size` when no remaining pair occurs least_count times. Throws Error when there
// is no word, UsageError when the special pieces and characters alone are more than `size`.
std::vector<std::string> learn_wordpiece(const WordCounts& words, const WordpieceTraining& training);

}  // namespace etc::data
