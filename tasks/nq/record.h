// One raw Natural Questions record, original or simplified, read and checked (task-nq 1, 9). What depends on a
// tokenizer is not here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/readers/json_record.h"
#include "tasks/nq/metrics.h"
#include "tasks/nq/prepare_config.h"

namespace etc::nq {

struct DocumentToken {
  std::string_view text;
  bool html = false;
};

// Document tokens [start, end) that may be a long answer; one that is not top-level lies inside another.
struct Candidate {
  std::int64_t start = 0, end = 0;
  bool top_level = false;
};

struct RecordAnnotation {
  Annotation answers;
  bool exact_yes_no = true;  // yes_no_answer is spelt in capitals, as the data set does
};

// Texts point into the raw record, which must outlive this.
struct Record {
  std::string id;  // decimal; empty: unreadable
  std::int64_t example_id = 0;
  std::string_view question;
  std::vector<DocumentToken> tokens;
  std::vector<Candidate> candidates;
  std::vector<RecordAnnotation> annotations;
};

// What read_record() looks at in the objects of document_tokens: the list may be in raw.columns.
extern const data::FlatMembers kTokenMembers;

// Reads the fields and reports everything wrong with them; of a list the first bad element. When a fault rejects the
// record, the result holds what could be read. raw.value is an object.
Record read_record(const data::JsonRecord& raw, const PrepareConfig& config, prepare::FaultList& faults);

}  // namespace etc::nq
