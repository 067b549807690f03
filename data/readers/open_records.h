// Opens the reader for the layout of a file of JSON records.
#pragma once

#include <memory>

#include "data/readers/question_reader.h"
#include "data/readers/record_slicer.h"

namespace etc::data {

// The stream must outlive the reader.
inline std::unique_ptr<RecordReader> open_records(ByteStream& stream, RecordLayout layout) {
  if (layout == RecordLayout::questions) return std::make_unique<QuestionReader>(stream);
  return std::make_unique<RecordSlicer>(stream, layout);
}

}  // namespace etc::data
