// The words that BLEU counts, as sacreBLEU 2 cuts them (translation 10.2). The 13a rules also split the words of a
// translation's own vocabulary (section 4).
#pragma once

#include <string>
#include <string_view>

namespace etc::data {

// Each function returns the words of one segment, separated by single blanks. split_13a and split_at_blanks keep
// invalid UTF-8 unchanged. White space is Python's.

// 13a, the rules of mteval-v13a. ASCII punctuation is set apart, except ' - and, between digits, . and , ; a hyphen
// only after a digit. The four entities &quot; &amp; &lt; &gt; are decoded.
std::string split_13a(std::string_view text);

// intl, mteval-v14 with Unicode categories: punctuation next to a character that is not a number, and every symbol, is
// set apart.
std::string split_international(std::string_view utf8);

// char: every character but white space is a word.
std::string split_characters(std::string_view utf8);

// none: words are separated by white space only.
std::string split_at_blanks(std::string_view utf8);

// The text without white space at its end, which sacreBLEU removes before splitting.
std::string_view without_end_blanks(std::string_view utf8);

// The substitution of the "compound split" script (section 10.1) on one segment: `(\S)-(\S)` becomes
// `\1 ##AT##-##AT## \2`, from left to right without overlap.
std::string split_compounds(std::string_view utf8);

}  // namespace etc::data
