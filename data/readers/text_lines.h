// The lines of a text, plain or gzip, one after the other.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "data/readers/byte_stream.h"
#include "data/readers/record_reader.h"
#include "data/readers/text_blocks.h"
#include "etc_core/base/not_copied.h"

namespace etc::data {

class TextLines : NotCopied {
 public:
  static constexpr std::size_t kLongestLine = std::size_t{1} << 26;  // bytes; beyond this, not a text of lines

  explicit TextLines(ByteStream& stream) : text_(stream) {}

  // Appends the next line with its line end, which the last line may lack; false at the end of the text. Nothing is
  // appended of a line that cannot be read to its end. Throws InputFault "line_too_long" at a line that is too long,
  // "gzip_truncated" where damaged data end; the whole lines before it have then been returned.
  bool append(std::string& text);

  const TextPosition& position() const { return text_.position(); }  // of the next line

  // See TextBlocks.
  bool skip_byte_order_mark() { return text_.skip_byte_order_mark(); }

 private:
  TextBlocks text_;
};

// The line without its end, "\n" or "\r\n".
std::string_view without_line_end(std::string_view line);

// "the file starts with a byte-order mark, …", for RecordReader::notes().
FileNote byte_order_mark_note();

}  // namespace etc::data
