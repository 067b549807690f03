// Word frequencies of texts, from which vocabularies are learned.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "data/text/punkt_tables.h"
#include "data/text/punkt_trainer.h"
#include "data/text/wordpiece_vocab.h"

namespace etc::data {

using WordCounts = std::unordered_map<std::string, std::int64_t, StringViewHash, std::equal_to<>>;

// Calls visit for every word of a text. Thread-safe.
using VisitWord = std::function<void(std::string_view)>;
using SplitWords = std::function<void(std::string_view text, const VisitWord& visit)>;

// Counts on all threads. Memory: the distinct words, at most about most_words. If there are more, the rarest so far are
// removed, at points that depend on the text alone. Words longer than kLongestWord are left out.
inline constexpr std::size_t kMostWords = std::size_t{1} << 22;
WordCounts count_words(const TextSource& texts, const SplitWords& split, std::size_t most_words = kMostWords);

// Words of the basic tokenizer (basic_tokenizer.h).
WordCounts count_words(const TextSource& texts, bool lower_case, std::size_t most_words = kMostWords);

// A word's characters, each as UTF-8.
std::vector<std::string> characters_of(std::string_view word);

}  // namespace etc::data
