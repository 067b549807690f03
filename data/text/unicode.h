// The Unicode functions that the project uses, implemented with ICU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace etc::data {

std::string unicode_version();  // of ICU's tables, "15.0"

// Byte offset of the first byte that is not well-formed UTF-8, or nullopt.
std::optional<std::size_t> invalid_utf8(std::string_view bytes);

std::u32string to_code_points(std::string_view utf8);  // invalid sequences are dropped
std::string to_utf8(std::u32string_view code_points);  // surrogates and numbers above U+10FFFF are dropped
void append_utf8(std::string& utf8, char32_t c);       // the same for one character

// The character that starts at byte `at` < utf8.size(); moves `at` past it. An invalid sequence gives kNoCharacter and
// is skipped as Unicode recommends (its longest prefix of a well-formed one, at least one byte).
inline constexpr char32_t kNoCharacter = 0xFFFFFFFF;
char32_t next_code_point(std::string_view utf8, std::size_t& at);

// Python's str.lower() on a whole string: full mappings, final sigma. Invalid sequences are dropped.
std::string lower_case(std::string_view utf8);

// Canonical decomposition without the characters of category Mn, BERT's "strip accents".
std::string strip_accents(std::string_view utf8);

// Python's str.strip(): Unicode white space at both ends (what str.isspace accepts).
std::string_view strip(std::string_view utf8);
bool is_space(char32_t c);  // Python's str.isspace for one character

// Python's str.isdigit for one character: decimal digits and characters such as U+00B2 (superscript two), but not
// U+00BD (a half).
bool is_digit(char32_t c);
bool is_letter(char32_t c);       // any category that starts with L
bool is_white_space(char32_t c);  // Unicode's property White_Space: is_space() without U+001C to U+001F
bool is_decimal(char32_t c);      // category Nd: Python's \d in a pattern
bool is_word(char32_t c);         // Python's \w in a pattern: letters, all numbers, underscore
bool is_upper(char32_t c);        // Python's str.isupper for one character (title case is not upper)
bool is_lower(char32_t c);        // Python's str.islower for one character
bool is_control(char32_t c);      // category Cc or Cf
bool is_separator(char32_t c);    // category Zs
bool is_punctuation(char32_t c);  // any category that starts with P
bool is_number(char32_t c);       // any category that starts with N
bool is_symbol(char32_t c);       // any category that starts with S

}  // namespace etc::data
