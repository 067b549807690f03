#include "data/readers/record_reader.h"

#include <cstring>

namespace etc::data {

void TextPosition::advance(const char* text, std::size_t size) {
  byte_offset += static_cast<std::int64_t>(size);
  const char* const end = text + size;
  while (const void* line_end = std::memchr(text, '\n', static_cast<std::size_t>(end - text))) {
    text = static_cast<const char*>(line_end) + 1;
    column = 1;
    ++line;
  }
  column += end - text;
}

InputFault::InputFault(std::string code, TextPosition where, const std::string& message)
    : Error(fmt::format("byte {}, line {}, column {}: {}", where.byte_offset, where.line, where.column, message)),
      code_(std::move(code)),
      where_(where) {}

}  // namespace etc::data
