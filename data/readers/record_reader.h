// Interface of readers of raw records: they return the bytes of one record after the other, each with its place in the
// file.
//
// A reader knows how a file's records are separated, not what they contain: record_slicer.h cuts JSON, and a reader of
// another form (tab-separated lines, plain text by documents) is another class derived from RecordReader, in its own
// file. Offsets, lines and columns are counted in the uncompressed bytes.
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

// Capacity that a slice's text has after its end, so that a parser that needs padding there need not copy the text.
inline constexpr std::size_t kTextPadding = 64;

inline constexpr const char* kEndsInsideRecord = "the file ends inside a record";

// A raw record.
struct RecordSlice {
  std::int64_t index = 0;  // 0-based position among the file's records
  TextPosition begin;
  std::string text;
  std::string cut_short;  // why the text ends before the record does; empty: the record is complete
  // JSON lines: the file's last line has no line end. The record is complete if it is valid JSON, which parse_record
  // checks.
  bool open_line = false;
  // The start of the next record does not depend on this record's content: unless the record is cut short, a fault in
  // its text affects this record alone.
  bool stands_alone = false;
};

// Text that cannot be read. The fault affects one record if stands_alone is set in it, else the file from here on
// (severity fatal of task-wikihop 9). what() is "byte …, line …, column …: message".
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

// An irregularity of the whole file that loses no record; the report lists it as a warning.
struct FileNote {
  std::string code;
  std::string message;
};

class RecordReader {
 public:
  virtual ~RecordReader() = default;

  // The next record of the file, in order; false after the last. Throws InputFault where the file cannot be read
  // further; records returned before remain valid. Called by one thread at a time.
  virtual bool next(RecordSlice& slice) = 0;

  // Notes on the part read so far; complete after the last record.
  virtual std::vector<FileNote> notes() const { return {}; }
};

}  // namespace etc::data
