// What a reader of raw records gives: the bytes of one record after the other, each with its place in the file.
//
// A reader knows how the records of a file are set apart and nothing of what stands in them: record_slicer.h cuts JSON,
// and a reader of another form (tab-separated lines, plain text by documents) is one more class derived from
// RecordReader, in a file of its own. Offsets, lines and columns are counted in the uncompressed bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "etc_core/base/error.h"

namespace etc::data {

// A place in a file; line and column count from 1, columns are bytes.
struct TextPosition {
  std::int64_t byte_offset = 0;
  std::int64_t line = 1;
  std::int64_t column = 1;

  void advance(const char* text, std::size_t size);
};

// Bytes that a slice's text has room for behind its end, so that a parser that wants some there need not copy it.
inline constexpr std::size_t kTextPadding = 64;

inline constexpr const char* kEndsInsideRecord = "the file ends inside a record";

// A raw record.
struct RecordSlice {
  std::int64_t index = 0;  // 0-based position among the file's records
  TextPosition begin;
  std::string text;
  std::string cut_short;  // why the text ends before the record does; empty: it is whole
  // Of lines: the file ends without a line end behind it. It is whole if it is JSON; parse_record finds out.
  bool open_line = false;
  // Where the next record begins does not depend on what this one holds: unless it is cut short, a fault in its text is
  // a fault of this record alone.
  bool stands_alone = false;
};

// A text that cannot be read: of a record that stands alone this one, else the file from here on (severity fatal of
// task-wikihop 9). what() is "byte …, line …, column …: message".
class InputFault : public Error {
 public:
  InputFault(std::string code, TextPosition where, const std::string& message);
  // Of JSON: "json_syntax" | "utf8_invalid" | "top_level_not_array" | "gzip_truncated" (lines) | "data_missing" and
  // "duplicate_key" (questions)
  const std::string& code() const { return code_; }
  const TextPosition& where() const { return where_; }

 private:
  std::string code_;
  TextPosition where_;
};

// Something odd about a file as a whole that costs no record; the report lists it as a warning.
struct FileNote {
  std::string code;
  std::string message;
};

class RecordReader {
 public:
  virtual ~RecordReader() = default;

  // The next record of the file, in order; false after the last. Throws InputFault where the file cannot be read on;
  // what came before stays good. Called by one thread at a time.
  virtual bool next(RecordSlice& slice) = 0;

  // Of what was read so far; complete after the last record.
  virtual std::vector<FileNote> notes() const { return {}; }
};

}  // namespace etc::data
