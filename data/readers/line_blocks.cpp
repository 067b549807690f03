#include "data/readers/line_blocks.h"

#include <algorithm>
#include <string_view>

namespace etc::data {

namespace {

bool is_empty_line(std::string_view line) {
  return line.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos;
}

}  // namespace

// Appends a line with its end; false at the end of the file. Of a line that cannot be read to its end nothing stays.
bool LineBlockReader::take_line(std::string& text) {
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

bool LineBlockReader::next(RecordSlice& slice) {
  if (!started_) byte_order_mark_ = text_.skip_byte_order_mark();
  started_ = true;
  slice = {};
  slice.index = next_index_;
  slice.begin = text_.position();
  slice.stands_alone = true;
  slice.text.reserve(kBlockBytes + kTextPadding);
  std::size_t line = 0;  // where the last line begins
  try {
    while (!fault_ && take_line(slice.text)) {
      const std::size_t size = slice.text.size();
      const bool may_end = end_ == BlockEnd::any_line || size >= kLargestParagraph ||
                           is_empty_line(std::string_view(slice.text).substr(line));
      if (size >= kBlockBytes && may_end) break;
      line = size;
    }
  } catch (const InputFault& fault) {
    fault_ = fault;
  }
  if (slice.text.empty() && fault_) throw *fault_;
  if (slice.text.empty()) return false;
  ++next_index_;
  return true;
}

std::vector<FileNote> LineBlockReader::notes() const {
  if (!byte_order_mark_) return {};
  return {{"byte_order_mark", "the file starts with a byte-order mark, which is left out"}};
}

}  // namespace etc::data
