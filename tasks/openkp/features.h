// From a page's elements to the long and the global sequence and the labels (task-openkp 2.3 – 2.7).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/text/tokenizer.h"
#include "tasks/openkp/page.h"
#include "tasks/openkp/prepare_config.h"

namespace etc::openkp {

// An occurrence of a key phrase in the kept words.
struct PhraseLabel {
  std::int64_t start = 0;   // word
  std::int64_t length = 0;  // words
};

struct Features {
  std::vector<std::int64_t> long_token_ids, long_word_idx, long_vdom_idx;  // [n]
  std::int64_t num_words = 0;               // w: kept words, including those without tokens
  std::int64_t num_globals = 0;             // V: kept elements, or blocks
  std::vector<PhraseLabel> labels;          // in the order they were found
  std::vector<std::string> missing_keys;    // key strings without a label, in order; none with fixed blocks
  std::vector<std::string> lower_words;     // [w]; only with config.first_occurrence, and none with fixed blocks
  std::vector<std::int64_t> element_words;  // words of each kept element; none with fixed blocks
  std::int64_t words_without_tokens = 0;
};

// The key phrases in the form in which they are searched and stored: words joined by one space, lower-cased, distinct,
// sorted.
std::vector<std::string> key_strings(const std::vector<Phrase>& phrases);

// Keeps whole elements (or, with fixed blocks, words of the text) in order and stops at the first that would exceed L
// tokens or G globals, even if a later one would fit. Key strings are searched in the kept text: as whole words between
// spaces inside one element or, with fixed blocks, anywhere in the text up to the last word with a token. Cost: linear in
// the text; with fixed blocks, times the number of key strings.
Features lay_out(const Page& page, const std::vector<std::string>& keys, const data::Tokenizer& tokenizer,
                 const PrepareConfig& config);

// For every phrase of k = 1 … K words, [K, w] row-major, the first word of its first occurrence among the kept elements,
// ignoring case. For a phrase that reaches beyond its element this is its own start.
std::vector<std::int64_t> first_occurrences(const Features& features, std::int64_t longest_phrase);

}  // namespace etc::openkp
