// The reader of files in SQuAD's form: one record per question, with the text it is asked of.
//
//   {"data": [{"paragraphs": [{"context": C, "qas": [Q, …]}, …]}, …]}   →   {"context":C,"question":Q} for every Q
//
// Other members are passed over, wherever they stand. Articles are read one at a time, so memory is one article.
#pragma once

#include <memory>

#include "data/readers/byte_stream.h"
#include "data/readers/record_reader.h"
#include "etc_core/base/not_copied.h"

namespace etc::data {

class QuestionReader : public RecordReader, NotCopied {
 public:
  explicit QuestionReader(ByteStream& stream);
  ~QuestionReader() override;

  // The next question, at its own place in the file. An article without a list of paragraphs and a paragraph without a
  // list of questions are given as they stand, for whoever reads records to refuse. Throws InputFault at an article that
  // is not JSON, where the file is no such object, and at a second "data" behind the articles.
  bool next(RecordSlice& slice) override;

  // A byte-order mark; keys that occur twice around the questions. Those within a question its record has.
  std::vector<FileNote> notes() const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace etc::data
