// Punkt's characters and words: the patterns of its tokenizer, hand-written instead of regular expressions. Everything
// works on UTF-8 bytes, because all characters with a special role are ASCII.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/punkt_tables.h"

namespace etc::data::punkt {

bool is_end(char c);      // . ? !
bool is_closer(char c);   // " ' ) ] }
bool is_barrier(char c);  // ? ! ) " ; } ] * : @ ' ( { [: may follow a sentence's end without white space

// Bytes of the white-space character (Python's isspace) at byte `at`; 0 when there is none.
std::size_t space_length(std::string_view text, std::size_t at);

// Bytes of the character at byte `at`.
std::size_t character_length(std::string_view text, std::size_t at);

// Bytes of the run of white space at byte `at`, and of the run of other characters.
std::size_t space_run(std::string_view text, std::size_t at);
std::size_t word_run(std::string_view text, std::size_t at);

// Appends the words of a context, line by line (step 2): runs of hyphens or periods and spaced ellipses, words without
// the punctuation around them, single characters.
void split_words(std::string_view context, std::vector<std::string_view>& words);

inline constexpr std::string_view kNumberType = "##number##";

// The type of a word: its lower case, or kNumberType.
std::string type_of(std::string_view word);
std::string without_period(std::string type);  // removes one final period, unless the type is only a period

// Whether the word is a single letter or underscore and a period.
bool is_initial(std::string_view word);

char32_t first_character(std::string_view word);

// Mark of a word without its context (step 3).
enum class Mark { none, sentence_end, abbreviation, ellipsis };
Mark first_pass(std::string_view word, const StringSet& abbreviations);

// Whether a word is a number (step 2): an optional "-", an optional "." or ",", a digit, then digits , . and -.
bool is_number(std::string_view word);

}  // namespace etc::data::punkt
