// From a page's elements to the long and the global sequence and the labels (task-openkp 2.3 – 2.7).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/text/tokenizer.h"
#include "tasks/openkp/page.h"
#include "tasks/openkp/prepare_config.h"

namespace etc::openkp {

// A key phrase in the kept words.
struct PhraseLabel {
  std::int64_t start = 0;   // word
  std::int64_t length = 0;  // words
};

struct Features {
  std::vector<std::int64_t> long_token_ids, long_word_idx, long_vdom_idx;  // [n]
  std::int64_t num_words = 0;               // w: words of what was kept, those without tokens, too
  std::int64_t num_globals = 0;             // V: kept elements, or blocks
  std::vector<PhraseLabel> labels;          // in the order they were found
  std::vector<std::string> missing_keys;    // key strings without a label, in order; none with fixed blocks
  std::vector<std::string> lower_words;     // [w]; only with config.first_occurrence, and none with fixed blocks
  std::vector<std::int64_t> element_words;  // words of each kept element; none with fixed blocks
  std::int64_t words_without_tokens = 0;
};

// The key phrases as they are searched and stored: words joined by one space, lower-cased, each once, sorted.
std::vector<std::string> key_strings(const std::vector<Phrase>& phrases);

// Takes whole elements (or, with fixed blocks, words of the text) in order until the next would exceed L tokens or G
// globals; no smaller one behind it is looked for. Key strings are looked for in what was kept: padded by spaces inside
// one element, or, with fixed blocks, anywhere in the text up to the last word with a token. Cost: linear in the
// text, with fixed blocks times the number of key strings.
Features lay_out(const Page& page, const std::vector<std::string>& keys, const data::Tokenizer& tokenizer,
                 const PrepareConfig& config);

// For every phrase of k = 1 … K words, [K, w] by rows, the first word of its first occurrence among the kept elements,
// letters' case aside; phrases that reach beyond their element have their own start.
std::vector<std::int64_t> first_occurrences(const Features& features, std::int64_t longest_phrase);

}  // namespace etc::openkp
