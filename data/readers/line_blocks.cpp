#include "data/readers/line_blocks.h"

#include <string_view>

namespace etc::data {

namespace {

bool is_empty_line(std::string_view line) {
  return line.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos;
}

}  // namespace

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
    while (!fault_ && text_.append(slice.text)) {
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
  return {byte_order_mark_note()};
}

}  // namespace etc::data
