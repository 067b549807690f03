// Where a JSON value ends, found by following brackets and strings alone: what readers that cut JSON have in common.
// Whether the text is valid JSON is json_record.h's question.
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

// Follows one value through the blocks it lies in.
class ValueScanner {
 public:
  explicit ValueScanner(char first) : bracketed_(first == '{' || first == '[' || first == '"') {}

  // How many bytes of the block belong to the value; whole() says whether its end was found.
  std::size_t scan(const char* text, std::size_t size) {
    return bracketed_ ? scan_bracketed(text, size) : scan_scalar(text, size);
  }
  bool whole() const { return whole_; }
  bool in_string() const { return in_string_; }  // what was scanned ends there

 private:
  std::size_t scan_bracketed(const char* text, std::size_t size);
  // A number, a literal, or whatever else stands where a value should: up to the next separator.
  std::size_t scan_scalar(const char* text, std::size_t size);

  bool bracketed_;
  bool whole_ = false;
  bool in_string_ = false;
  bool escaped_ = false;  // the next character of the string stands for itself
  std::int64_t open_ = 0;
};

// Moves to the next byte that is no blank, or to the end.
void skip_blanks(TextBlocks& text);

// Appends the bytes of the value that begins here, up to about `most`; false: the file or that limit cut it.
bool take_value(TextBlocks& text, std::size_t most, std::string& value);

// Throws the InputFault that something else was expected here: at the end of the file, or at a character.
[[noreturn]] void fail_expected(TextBlocks& text, const std::string& expected);

}  // namespace etc::data
