// Learns Punkt's tables from plain text (Kiss & Strunk, "Unsupervised Multilingual Sentence Boundary Detection",
// Computational Linguistics 32, 2006) with the thresholds of NLTK 3.5's trainer; the same text gives the same tables as
// NLTK.
//
// Three passes over the texts, so that memory grows with the number of distinct words, not with the text:
//   count    how often each type occurs, with and without a period after it → abbreviations
//   context  using these: where sentences seem to end, and in which letter case words are written there → orthographic
//            context
//   pairs    using that: rare abbreviations, words that start sentences, collocations
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "data/text/punkt_tables.h"

namespace etc::data {

// Calls its argument with every text, in the same order at every call.
using TextSource = std::function<void(const std::function<void(std::string_view utf8)>& visit)>;

// Learns tables from these texts; a text is one paragraph or several, separated by empty lines. sha256 stays empty.
// Throws Error when there is no word.
PunktTables learn_punkt(const TextSource& texts);

// Writes the four files, sorted, into a new folder: all of them or none. Throws Error naming the folder if it exists.
void write_punkt_tables(const PunktTables& tables, const std::filesystem::path& folder);

// The statistics that the decisions use; public for tests.
namespace punkt {

// Dunning's log-likelihood ratio of an abbreviation: a period follows the type with probability 0.99 rather than with
// the probability over all words. count: occurrences of the type; with_period: those followed by a period; periods,
// words: in the whole text.
double abbreviation_likelihood(double count, double periods, double with_period, double words);

// The ratio for two words that occur together. first, second, both: occurrences of each word and of the pair, among
// `words` words.
double collocation_likelihood(double first, double second, double both, double words);

}  // namespace punkt

}  // namespace etc::data
