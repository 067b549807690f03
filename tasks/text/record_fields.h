// Members of one raw record, and what is wrong with them, in the words of section 9 of the task specifications.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "tasks/prepare/preparation.h"

namespace etc::text {

// "context[3][1]" from ("context[3]", 1).
std::string element(const std::string& field, std::size_t index);

// Reads a record for a task and reports to its list of faults; record and list must outlive it.
class RecordFields {
 public:
  // known_keys: the members the task reads; others are counted as unknown keys. Reports what the parser noted: a key
  // that occurs twice (warn), an unpaired surrogate escape in a known member (reject).
  RecordFields(const data::JsonRecord& raw, std::initializer_list<const char*> known_keys, prepare::FaultList& faults);

  // The member, or null when it is absent or null itself.
  const Json* find(const char* key) const;

  // The same, reporting missing_field (reject), and wrong_type (reject) when it is of another type.
  const Json* required(const char* key, Json::value_t type);

  // The text of a value that must be a string: wrong_type (reject) and "" when it is none, bad_character (warn) when it
  // holds U+0000 or U+FFFD.
  std::string text(const std::string& field, const Json& value);

  void wrong_type(const std::string& field, const char* expected, const Json& got);
  prepare::FaultList& faults() { return faults_; }

 private:
  bool is_known(const std::string& field) const;
  void report_notes();
  void count_unknown_keys();
  bool has_unpaired_surrogate(const std::string& field) const;

  const data::JsonRecord& raw_;
  std::vector<std::string> known_keys_;
  prepare::FaultList& faults_;
};

}  // namespace etc::text
