#include "data/readers/text_lines.h"

#include <algorithm>

namespace etc::data {

bool TextLines::append(std::string& text) {
  const std::size_t before = text.size();
  const TextPosition begin = text_.position();
  for (bool done = false; !done && text_.available(1) > 0;) {
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
  if (text_.available(1) == 0 && !text_.fault().empty()) {
    if (!text.ends_with('\n')) text.resize(before);
    if (text.size() == before) throw InputFault("gzip_truncated", begin, text_.fault());
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
