// Finds the end of a JSON value by following brackets and strings only; shared by the readers that cut JSON.
// json_record.h checks whether the text is valid JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "data/readers/text_blocks.h"

namespace etc::data {

inline bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Follows one value across blocks.
class ValueScanner {
 public:
  explicit ValueScanner(char first) : bracketed_(first == '{' || first == '[' || first == '"') {}

  // Returns how many bytes of the block belong to the value; whole() tells whether its end was found.
  std::size_t scan(const char* text, std::size_t size) {
    return bracketed_ ? scan_bracketed(text, size) : scan_scalar(text, size);
  }
  bool whole() const { return whole_; }
  bool in_string() const { return in_string_; }  // the scanned text ends inside a string

 private:
  std::size_t scan_bracketed(const char* text, std::size_t size);
  // A number, a literal, or any other text where a value should be: up to the next separator.
  std::size_t scan_scalar(const char* text, std::size_t size);

  bool bracketed_;
  bool whole_ = false;
  bool in_string_ = false;
  bool escaped_ = false;  // the next character of the string is escaped
  std::int64_t open_ = 0;
};

// Moves to the next byte that is not a blank, or to the end.
void skip_blanks(TextBlocks& text);

// Appends the bytes of the value that begins here, up to about `most`; false if the file's end or this limit cut it.
bool take_value(TextBlocks& text, std::size_t most, std::string& value);

// Throws an InputFault: `expected` was expected here, but the file ends or has another character.
[[noreturn]] void fail_expected(TextBlocks& text, const std::string& expected);

}  // namespace etc::data
