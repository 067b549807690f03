// Reads two parallel texts line by line: a source text and its translation.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/readers/byte_stream.h"
#include "data/readers/record_reader.h"
#include "data/readers/text_lines.h"
#include "etc_core/base/not_copied.h"

namespace etc::data {

// A record is a pair of lines: its text is the source line, "\n", the target line, both without their ends ("\n" or
// "\r\n"). Its place is that of the source line.
class ParallelLines : public RecordReader, NotCopied {
 public:
  // target: the file of the translation; without it a record is a source line alone.
  ParallelLines(ByteStream& source, const std::optional<std::filesystem::path>& target);
  // For a target that the caller has opened (and may have hashed). Both streams must outlive the reader; target_path is
  // for messages.
  ParallelLines(ByteStream& source, ByteStream& target, std::filesystem::path target_path);

  // False after the last pair. Throws Error with both counts if one text has more lines than the other. Throws
  // InputFault "line_too_long" or "gzip_truncated", which names the target file if the fault is there; the whole pairs
  // before it are returned first.
  bool next(RecordSlice& slice) override;

  std::vector<FileNote> notes() const override;  // byte-order marks

 private:
  bool append_target(std::string& text);
  [[noreturn]] void fail_unequal(bool source_is_longer);

  TextLines source_;
  std::filesystem::path target_path_;
  std::optional<ByteStream> target_stream_;
  std::optional<TextLines> target_;
  std::int64_t next_index_ = 0;
  bool byte_order_mark_ = false, target_byte_order_mark_ = false;
};

}  // namespace etc::data
