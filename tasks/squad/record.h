// One raw SQuAD question with the text it is asked of, read and checked (dense-transformer 5.1, 8). What depends on a
// tokenizer is not here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/readers/json_record.h"
#include "tasks/prepare/preparation.h"
#include "tasks/squad/prepare_config.h"

namespace etc::squad {

struct Answer {
  std::string text;
  std::int64_t start = -1;  // code point of the context
};

struct Record {
  std::string id;
  std::string question;
  std::string context;
  std::vector<Answer> answers;
  bool impossible = false;
};

// Reads the fields of a record of data/readers/question_reader.h and reports everything wrong with them. When a fault
// rejects the record, the result holds what could be read.
Record read_record(const data::JsonRecord& raw, const PrepareConfig& config, prepare::FaultList& faults);

// Bytes of the context, both inclusive, of the first and last character of an answer to train on.
struct AnswerBytes {
  std::size_t first = 0, last = 0;
};

// The place of the one answer of a question that is not impossible. False, with a fault, where there is none or more
// than one, where it is empty or outside of the context.
bool find_answer(const Record& record, const PrepareConfig& config, prepare::FaultList& faults, AnswerBytes& bytes);

}  // namespace etc::squad
