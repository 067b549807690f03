// Learns Punkt's tables from plain text (Kiss & Strunk, "Unsupervised Multilingual Sentence Boundary Detection",
// Computational Linguistics 32, 2006) with the thresholds of NLTK 3.5's trainer: the same tables as its, from the same
// text.
//
// Three passes over the same texts, so that memory is that of the different words, not of the text:
//   count    how often each type occurs, with and without a period behind it → abbreviations
//   context  with those: where sentences seem to end, and in which case words are written there → orthographic context
//   pairs    with that: rare abbreviations, words that start sentences, collocations
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

// Tables of these texts; a text is a paragraph of its own or several, with empty lines between. Without sha256. Throws
// Error when there is no word.
PunktTables learn_punkt(const TextSource& texts);

// Writes the four files into a folder that does not exist yet, sorted, all of them or none. Throws Error naming it.
void write_punkt_tables(const PunktTables& tables, const std::filesystem::path& folder);

// The statistics behind the decisions; public for tests.
namespace punkt {

// Dunning's log-likelihood ratio of an abbreviation: that a period follows its type with probability 0.99 rather than
// with that of all words. count: occurrences of the type; periods, words: in the whole text; with_period: of count.
double abbreviation_likelihood(double count, double periods, double with_period, double words);

// The same of two words that occur together: first, second and both of so many words.
double collocation_likelihood(double first, double second, double both, double words);

}  // namespace punkt

}  // namespace etc::data
