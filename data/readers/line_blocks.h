// The reader of plain text: blocks of whole lines, so that several threads can work on a text of any length and no line
// is cut.
//
// Where documents begin in a text, and what an empty line means, is the question of whoever reads the blocks: they hold
// every line of the file, empty ones too, each with its line end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/readers/byte_stream.h"
#include "data/readers/record_reader.h"
#include "data/readers/text_lines.h"
#include "etc_core/base/not_copied.h"

namespace etc::data {

enum class BlockEnd {
  any_line,    // a block may end behind any line
  empty_line,  // only behind a line of nothing but blanks, so that lines of one paragraph stay together, while that
               // keeps the block below kLargestParagraph
};

class LineBlockReader : public RecordReader, NotCopied {
 public:
  static constexpr std::size_t kBlockBytes = std::size_t{1} << 16;        // from here on a block ends where it may
  static constexpr std::size_t kLargestParagraph = std::size_t{1} << 22;  // then behind any line

  explicit LineBlockReader(ByteStream& stream, BlockEnd end = BlockEnd::any_line) : text_(stream), end_(end) {}

  // The next block; false after the last. A byte-order mark at the beginning is left out. Throws InputFault
  // "line_too_long" at such a line, "gzip_truncated" where damaged data end, behind the whole lines before it. Cost: one
  // pass over the bytes; memory: a block, or a line where that is longer.
  bool next(RecordSlice& slice) override;

  std::vector<FileNote> notes() const override;  // a byte-order mark

 private:
  TextLines text_;
  BlockEnd end_;
  std::int64_t next_index_ = 0;
  bool started_ = false, byte_order_mark_ = false;
  std::optional<InputFault> fault_;  // where the file cannot be read on; the lines before it are delivered first
};

}  // namespace etc::data
