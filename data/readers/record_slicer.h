// The reader of JSON: cuts a raw dataset into the texts of its records without parsing them.
//
// A dataset is one JSON array of records (WikiHop: 330 MB on one line), JSON lines, or a single object; which of them, the
// first bytes show, whatever layout is expected. The scanner follows only
// brackets and strings, so memory is one record plus one block, whatever the file's size; whether a slice is valid JSON
// is json_record.h's question.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/readers/byte_stream.h"
#include "data/readers/record_reader.h"
#include "etc_core/base/not_copied.h"

namespace etc::data {

// What is expected: one array, one record a line, or one object as question_reader.h says (open_records.h opens each).
enum class RecordLayout { array, lines, questions };

class RecordSlicer : public RecordReader, NotCopied {
 public:
  static constexpr std::size_t kMaxRecordBytes = std::size_t{1} << 30;

  // layout: array or lines. Either is read from a file in the other form, too, and so are objects one after the other that
  // take several lines each (jq's output); a file without a record is an array's fault alone. A record longer than max_record_bytes is cut short: then a quote or bracket is missing, or memory would run out.
  RecordSlicer(ByteStream& stream, RecordLayout layout, std::size_t max_record_bytes = kMaxRecordBytes);
  ~RecordSlicer() override;

  // The next record's text, without white space around it; false after the last. A record that the file's end (or the
  // size limit) cuts is delivered with cut_short set, and is the last. Throws InputFault at what cannot stand between
  // records: text before or after the array, missing or superfluous commas. Of lines in damaged gzip data the whole
  // ones are delivered, then InputFault is thrown. Cost: one pass over the bytes.
  bool next(RecordSlice& slice) override;

  std::vector<FileNote> notes() const override;  // a byte-order mark, empty lines

  bool byte_order_mark() const;      // the file starts with one; known after the first next()
  std::int64_t empty_lines() const;  // passed over so far, where records are lines

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace etc::data
