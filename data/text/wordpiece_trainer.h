// Learns a WordPiece vocabulary from plain text, so that a language without one can start.
//
// Pieces grow from single characters by merging the two neighbours that stand together most often (pair_merger.h), where
// a character inside a word is another piece ("##a") than one that starts a word ("a"). Of equally frequent pairs the one whose
// spelling comes first is merged, so that equal texts give equal vocabularies, whatever the number of threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/text/word_counts.h"

namespace etc::data {

struct WordpieceTraining {
  std::int64_t size = 30522;            // pieces in all
  bool lower_case = true;               // as the tokenizer will be used
  std::int64_t most_characters = 1000;  // different ones; words with a rarer one are left out
  std::int64_t least_count = 2;         // occurrences of a pair that is merged
};

// The vocabulary's pieces: BERT's special ones at BERT's places ([PAD], [unused0] … [unused98], [UNK], [CLS], [SEP],
// [MASK]), the characters by their frequency, as the start of a word and, where they were seen there, inside; then merged
// pieces in the order of their merges. Fewer than `size` when no pair occurs least_count times any more. Throws Error
// when there is no word, UsageError when the special pieces and characters alone are more than `size`.
std::vector<std::string> learn_wordpiece(const WordCounts& words, const WordpieceTraining& training);

}  // namespace etc::data
