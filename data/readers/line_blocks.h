// Reads plain text in blocks of whole lines, so that several threads can process a text of any length.
//
// Blocks hold every line of the file with its line end, empty lines included. The caller decides where documents begin
// and what an empty line means.
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
  any_line,    // a block may end after any line
  empty_line,  // only after a line of nothing but blanks, so that lines of one paragraph stay together, while that
               // keeps the block below kLargestParagraph
};

class LineBlockReader : public RecordReader, NotCopied {
 public:
  static constexpr std::size_t kBlockBytes = std::size_t{1} << 16;        // a block ends at the next allowed line
  static constexpr std::size_t kLargestParagraph = std::size_t{1} << 22;  // a block ends after any line

  explicit LineBlockReader(ByteStream& stream, BlockEnd end = BlockEnd::any_line) : text_(stream), end_(end) {}

  // The next block; false after the last. A byte-order mark at the beginning is left out. Throws InputFault
  // "line_too_long" at a line that is too long, "gzip_truncated" where damaged data end; the whole lines before the
  // fault are returned first. Cost: one pass over the bytes; memory: a block, or the longest line if that is more.
  bool next(RecordSlice& slice) override;

  std::vector<FileNote> notes() const override;  // a byte-order mark

 private:
  TextLines text_;
  BlockEnd end_;
  std::int64_t next_index_ = 0;
  bool started_ = false, byte_order_mark_ = false;
  std::optional<InputFault> fault_;  // pending fault; the lines before it are returned first
};

}  // namespace etc::data
