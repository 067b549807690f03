#include "data/readers/text_lines.h"

#include <algorithm>

namespace etc::data {

bool TextLines::append(std::string& text) {
  const std::size_t before = text.size();
  const TextPosition begin = text_.position();
  bool done = false;
  while (!done && text_.available(1) > 0) {
    const char* end = std::find(text_.begin(), text_.end(), '\n');
    done = end != text_.end();
    const auto count = static_cast<std::size_t>(end - text_.begin()) + (done ? 1 : 0);
    text.append(text_.begin(), count);
    text_.skip(count);
    if (text.size() - before > kLongestLine) {
      text.resize(before);
      throw InputFault(
          "line_too_long", begin,
          fmt::format("the line is longer than {} MiB: expected a text of lines (is it one?)", kLongestLine >> 20));
    }
  }
  // Not after a whole line: testing for more input could block on a pipe whose writer waits for the answer to this
  // line.
  if (!done && !text_.fault().empty()) {
    text.resize(before);
    throw InputFault("gzip_truncated", begin, text_.fault());
  }
  return text.size() > before;
}

std::string_view without_line_end(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

FileNote byte_order_mark_note() {
  return {"byte_order_mark", "the file starts with a byte-order mark, which is left out"};
}

}  // namespace etc::data
