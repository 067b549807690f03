// One raw SQuAD question with its context, read and checked, without a tokenizer (dense-transformer 5.1, 8).
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

// Reads the fields of a record of data/readers/question_reader.h and reports all their faults. When a fault rejects the
// record, the result holds the readable fields.
Record read_record(const data::JsonRecord& raw, const PrepareConfig& config, prepare::FaultList& faults);

// Bytes of the context, both inclusive, of the first and last character of an answer to train on.
struct AnswerBytes {
  std::size_t first = 0, last = 0;
};

// Finds the position of the single answer of a question that is not impossible. False, with a fault, if there is no answer
// or more than one, or if it is empty or outside the context.
bool find_answer(const Record& record, const PrepareConfig& config, prepare::FaultList& faults, AnswerBytes& bytes);

}  // namespace etc::squad
