// Cuts a raw dataset into the texts of its records without parsing them.
//
// A dataset is either one JSON array of records (WikiHop: 330 MB on one line) or JSON lines. The scanner follows only
// brackets and strings, so memory is one record plus one block, whatever the file's size; whether a slice is valid JSON
// is json_record.h's question. Offsets, lines and columns are counted in the uncompressed bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/readers/byte_stream.h"
#include "etc_core/base/error.h"

namespace etc::data {

enum class RecordLayout { array, lines };

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

struct RecordSlice {
  std::int64_t index = 0;  // 0-based position among the file's records
  TextPosition begin;
  std::string text;
  std::string cut_short;  // why the text ends before the record does; empty: it is whole
  // Of lines: the file ends without a line end behind it. It is whole if it is JSON; parse_record finds out.
  bool open_line = false;
};

// A text that cannot be read: of a file whose records are lines this one line, else the file from here on (severity
// fatal of task-wikihop 9). what() is "byte …, line …, column …: message".
class InputFault : public Error {
 public:
  InputFault(std::string code, TextPosition where, const std::string& message);
  // "json_syntax" | "utf8_invalid" | "top_level_not_array" | "gzip_truncated" (lines)
  const std::string& code() const { return code_; }
  const TextPosition& where() const { return where_; }

 private:
  std::string code_;
  TextPosition where_;
};

class RecordSlicer {
 public:
  static constexpr std::size_t kMaxRecordBytes = std::size_t{1} << 30;

  // A record longer than max_record_bytes is cut short: then a quote or bracket is missing, or memory would run out.
  RecordSlicer(ByteStream& stream, RecordLayout layout, std::size_t max_record_bytes = kMaxRecordBytes);
  ~RecordSlicer();
  RecordSlicer(const RecordSlicer&) = delete;
  RecordSlicer& operator=(const RecordSlicer&) = delete;

  // The next record's text, without white space around it; false after the last. A record that the file's end (or the
  // size limit) cuts is delivered with cut_short set, and is the last. Throws InputFault at what cannot stand between
  // records: text before or after the array, missing or superfluous commas. Of lines in damaged gzip data the whole
  // ones are delivered, then InputFault is thrown. Cost: one pass over the bytes.
  bool next(RecordSlice& slice);

  bool byte_order_mark() const;      // the file starts with one; known after the first next()
  std::int64_t empty_lines() const;  // passed over so far, where records are lines

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace etc::data
