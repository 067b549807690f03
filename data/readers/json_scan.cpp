#include "data/readers/json_scan.h"

#include <algorithm>

#include "data/text/unicode.h"

namespace etc::data {

std::size_t ValueScanner::scan_bracketed(const char* text, std::size_t size) {
  std::size_t i = 0;
  while (i < size) {
    if (in_string_) {
      for (; i < size; ++i) {
        if (escaped_) {
          escaped_ = false;
        } else if (text[i] == '\\') {
          escaped_ = true;
        } else if (text[i] == '"') {
          in_string_ = false;
          ++i;
          break;
        }
      }
      if (!in_string_ && open_ == 0) return whole_ = true, i;
      continue;
    }
    switch (text[i++]) {
      case '"':
        in_string_ = true;
        break;
      case '{':
      case '[':
        ++open_;
        break;
      case '}':
      case ']':
        if (--open_ == 0) return whole_ = true, i;
        break;
      default:
        break;
    }
  }
  return i;
}

std::size_t ValueScanner::scan_scalar(const char* text, std::size_t size) {
  const char* end =
      std::find_if(text, text + size, [](char c) { return c == ',' || c == ']' || c == '}' || is_blank(c); });
  whole_ = end < text + size;
  return static_cast<std::size_t>(end - text);
}

void skip_blanks(TextBlocks& text) {
  while (text.available(1) > 0) {
    text.skip(static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_blank) - text.begin()));
    if (text.size() > 0) return;
  }
}

bool take_value(TextBlocks& text, std::size_t most, std::string& value) {
  const std::size_t before = value.size();
  if (text.available(1) == 0) return false;
  ValueScanner scanner(*text.begin());
  while (!scanner.whole() && text.available(1) > 0 && value.size() - before < most) {
    const std::size_t count = scanner.scan(text.begin(), text.size());
    if (value.empty()) value.reserve(count + kTextPadding);
    value.append(text.begin(), count);
    text.skip(count);
  }
  return scanner.whole();
}

void fail_expected(TextBlocks& text, const std::string& expected) {
  if (text.available(1) == 0) {
    const std::string why = text.fault().empty() ? "the file ends" : text.fault();
    throw InputFault("json_syntax", text.position(), fmt::format("{}: expected {}", why, expected));
  }
  const std::size_t count = std::min<std::size_t>(text.available(4), 4);
  const std::string_view here(text.begin(), count);
  if (invalid_utf8(here) == std::size_t{0}) throw InputFault("utf8_invalid", text.position(), "not well-formed UTF-8");
  const auto c = static_cast<unsigned char>(here[0]);
  const std::string got = c > 0x20 && c < 0x7F ? fmt::format("'{}'", here[0]) : fmt::format("byte 0x{:02X}", c);
  throw InputFault("json_syntax", text.position(), fmt::format("expected {}, got {}", expected, got));
}

}  // namespace etc::data
