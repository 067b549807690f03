// One raw Natural Questions record, original or simplified, read and checked, without a tokenizer (task-nq 1, 9).
#pragma once

#include <cstdint>
#include <initializer_list>
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

// Document tokens [start, end) that may be a long answer; a candidate that is not top-level lies inside another.
struct Candidate {
  std::int64_t start = 0, end = 0;
  bool top_level = false;
};

struct RecordAnnotation {
  Annotation answers;
  bool exact_yes_no = true;  // yes_no_answer is spelt in capitals, as the data set does
  // A span that contradicts itself was left out of the answers.
  bool long_left_out = false, short_left_out = false;
};

// Texts are views into the raw record, which must outlive this.
struct Record {
  std::string id;  // decimal; empty: unreadable
  std::int64_t example_id = 0;
  std::string_view question;
  std::vector<DocumentToken> tokens;
  std::vector<Candidate> candidates;
  std::vector<RecordAnnotation> annotations;
};

// The members of the objects of document_tokens that read_record() reads; the list may be in raw.columns.
extern const data::FlatMembers kTokenMembers;

// The members of a record that are read.
inline constexpr std::initializer_list<const char*> kRecordMembers = {
    "example_id",    "question_text",   "question_tokens", "document_url",           "document_title",
    "document_html", "document_tokens", "document_text",   "long_answer_candidates", "annotations"};

// Reads the fields and reports all their faults; for a list, its first bad element. When a fault rejects the record, the
// result holds the readable fields. raw.value must be an object.
Record read_record(const data::JsonRecord& raw, const PrepareConfig& config, prepare::FaultList& faults);

}  // namespace etc::nq
