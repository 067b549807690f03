// Reads files in SQuAD's form: one record per question, with the text that the question is about.
//
//   {"data": [{"paragraphs": [{"context": C, "qas": [Q, …]}, …]}, …]}   →   {"context":C,"question":Q} for every Q
//
// Other members are skipped, wherever they are. Articles are read one at a time, so memory is one article.
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

  // The next question, with its own place in the file. An article without a list of paragraphs and a paragraph without
  // a list of questions are returned unchanged, as records that the task will refuse. Throws InputFault at an article
  // that is not JSON, if the file is not an object of this form, and at a second "data" after the articles.
  bool next(RecordSlice& slice) override;

  // A byte-order mark; duplicate keys outside the questions. (Those within a question are notes of its record.)
  std::vector<FileNote> notes() const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace etc::data
