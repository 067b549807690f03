// One raw WikiHop record, read and checked, without a tokenizer (task-wikihop 1.1, 2.1, 9).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/readers/json_record.h"
#include "tasks/prepare/preparation.h"
#include "tasks/wikihop/prepare_config.h"

namespace etc::wikihop {

// Documents may be large: they stay in the raw record, which must outlive this one.
struct Record {
  std::string id;
  std::string query;                       // raw
  std::optional<std::string> answer;       // raw; none when absent
  std::vector<std::string> candidates;     // stripped, then lower-cased
  std::vector<std::string_view> supports;  // raw documents
  std::int64_t label = -1;                 // first candidate equal to the answer; -1: none
  bool equal_candidates = false;
  bool unusable_label = false;  // the answer is not a candidate; the record is kept for prediction
};

// The members of a record that are read.
inline constexpr std::initializer_list<const char*> kRecordMembers = {"id", "query", "answer", "candidates",
                                                                      "supports"};

// Reads the fields and reports all their faults. When a fault rejects the record, the result holds the readable fields, so
// that further checks can still run. raw.value must be an object.
Record read_record(const data::JsonRecord& raw, const PrepareConfig& config, prepare::FaultList& faults);

}  // namespace etc::wikihop
