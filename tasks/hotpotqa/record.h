// One raw HotpotQA record, read and checked, without a tokenizer (task-hotpotqa 1.1, 2.1, 9).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/readers/json_record.h"
#include "tasks/hotpotqa/metrics.h"
#include "tasks/hotpotqa/prepare_config.h"

namespace etc::hotpotqa {

struct Paragraph {
  std::string title;
  std::vector<std::string> sentences;
};

struct Record {
  std::string id;
  std::string question;
  std::optional<std::string> answer;
  std::optional<std::vector<SupportingFact>> supporting_facts;
  std::vector<Paragraph> context;
  std::string type, level;
  bool fact_out_of_range = false;   // a fact's sentence number is beyond its paragraph
  bool fact_title_unknown = false;  // a fact's title is not in the context

  bool labelled() const { return answer && supporting_facts; }

  // Sentence numbers of the facts by title.
  std::map<std::string, std::set<std::int64_t>> facts_by_title() const;
};

// The members of a record that are read.
inline constexpr std::initializer_list<const char*> kRecordMembers = {
    "_id", "question", "answer", "supporting_facts", "context", "type", "level"};

// Reads the fields and reports all their faults. When a fault rejects the record, the result holds the readable fields, so
// that further checks can still run. raw.value must be an object.
Record read_record(const data::JsonRecord& raw, const PrepareConfig& config, prepare::FaultList& faults);

}  // namespace etc::hotpotqa
