// String comparison of answers: the normalisation and the word overlap of the official question answering scores.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace etc::text {

// Lower case (full Unicode), without ASCII punctuation, without the words a, an and the, single spaces (task-hotpotqa
// 6.1). A word is a run of letters, numbers and underscores; combining marks do not belong to it.
std::string normalised_answer(std::string_view utf8);

// The parts between Unicode white space, as split by Python's str.split(); views of the text.
std::vector<std::string_view> white_space_words(std::string_view utf8);

struct WordOverlap {
  double f1 = 0, precision = 0, recall = 0;
};

// Shared words of two normalised strings, each word as often as it occurs in both: P = shared/|prediction|,
// R = shared/|gold|, F1 = 2PR/(P+R); all 0 without a shared word.
WordOverlap word_overlap(std::string_view prediction, std::string_view gold);

}  // namespace etc::text
