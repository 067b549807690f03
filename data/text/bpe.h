// Byte-pair encoding of words with the rules of subword-nmt, codes of version 0.2 (translation 4).
//
// A word starts as its characters, the last of which carries an end-of-word mark. Merges are applied in the order in
// which they were learned: pairs of lower rank are merged first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "data/text/word_counts.h"

namespace etc::data {

inline constexpr std::string_view kWordEnd = "</w>";

using Merge = std::pair<std::string, std::string>;

// Parses a line of a merge file: two symbols with one blank between them; nullopt: any other line.
std::optional<Merge> merge_of_line(std::string_view line);

// The first `merges` merges of these words: always the most frequent pair of neighbours, among equally frequent ones
// that with the lexicographically largest spelling (first pieces compared before second ones, by code points). Fewer if
// no pair occurs twice. Cost: proportional to the pairs that the merges change, times a logarithm. Equal counts give
// equal merges. Words longer than kLongestWord characters are left out.
std::vector<Merge> learn_bpe(const WordCounts& words, std::int64_t merges);

// Cuts words. Immutable; may be used from several threads.
class Bpe {
 public:
  // Of equal merges the first one counts. word_end: "" if the last character carries no mark.
  explicit Bpe(const std::vector<Merge>& merges, std::string_view word_end = kWordEnd);

  // Appends the end of each piece of a word, the last one at word.size(). Repeatedly merges all places of the pair with
  // the lowest rank, from left to right. An empty word has no piece. Time: n·log n for n characters.
  void cut(std::string_view word, std::vector<std::size_t>& ends) const;

 private:
  struct Rule {
    std::int32_t rank, merged;
  };
  using Rules = std::unordered_map<std::uint64_t, Rule>;
  class Word;

  std::int32_t symbol_of(const std::string& spelling) const;  // kNoSymbol: in no merge
  const Rule* rule_of(std::int32_t first, std::int32_t second) const;

  std::string word_end_;
  std::unordered_map<std::string, std::int32_t, StringViewHash, std::equal_to<>> symbols_;
  Rules rules_;
};

}  // namespace etc::data
