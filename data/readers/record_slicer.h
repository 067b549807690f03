// The reader of JSON: cuts a raw dataset into the texts of its records without parsing them.
//
// A dataset is one JSON array of records (WikiHop: 330 MB on one line), JSON lines, or objects one after the other; the
// first bytes show which, whatever layout is expected. The scanner follows only brackets and strings, so memory is one
// record plus one block, whatever the file's size; json_record.h checks whether a slice is valid JSON.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/readers/byte_stream.h"
#include "data/readers/record_reader.h"
#include "etc_core/base/not_copied.h"

namespace etc::data {

// The expected layout: one array, one record per line, or one object as in question_reader.h (open_records.h opens
// each).
enum class RecordLayout { array, lines, questions };

class RecordSlicer : public RecordReader, NotCopied {
 public:
  static constexpr std::size_t kMaxRecordBytes = std::size_t{1} << 30;

  // layout: array or lines. A file in the other layout is read as well, and so are consecutive objects of several lines
  // each (jq's output); an empty file is a fault only if an array is expected. A record longer than max_record_bytes is
  // cut short: a quote or bracket is probably missing, and memory would run out.
  RecordSlicer(ByteStream& stream, RecordLayout layout, std::size_t max_record_bytes = kMaxRecordBytes);
  ~RecordSlicer() override;

  // The next record's text, without white space around it; false after the last. A record cut by the file's end (or the
  // size limit) is returned with cut_short set, and is the last. Throws InputFault at unexpected text between records:
  // text before or after the array, missing or superfluous commas. With JSON lines in damaged gzip data, the whole
  // lines are returned, then InputFault is thrown. Cost: one pass over the bytes.
  bool next(RecordSlice& slice) override;

  std::vector<FileNote> notes() const override;  // a byte-order mark, empty lines

  bool byte_order_mark() const;      // the file starts with one; known after the first next()
  std::int64_t empty_lines() const;  // skipped so far, if records are lines

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace etc::data
