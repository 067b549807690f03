// Members of one raw record, and reports of their faults, worded as in section 9 of the task specifications.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "data/readers/json_record.h"
#include "tasks/prepare/preparation.h"

namespace etc::text {

// "context[3][1]" from ("context[3]", 1).
std::string element(const std::string& field, std::size_t index);

// The position of a value in a record, converted to text only for a report, because lists are long and faults rare. A
// path refers to its parent path, which must outlive it.
class FieldPath {
 public:
  FieldPath(std::string_view name) : name_(name) {}
  FieldPath(const std::string& name) : name_(name) {}
  FieldPath(const char* name) : name_(name) {}

  FieldPath element(std::size_t index) const { return {this, {}, index}; }
  FieldPath member(std::string_view name) const { return {this, name, 0}; }

  std::string words() const;  // "context[3].title"

 private:
  FieldPath(const FieldPath* list, std::string_view name, std::size_t index)
      : parent_(list), name_(name), index_(index) {}

  const FieldPath* parent_ = nullptr;
  std::string_view name_;  // empty: an element of the parent
  std::size_t index_ = 0;
};

// Reads a record for a task and reports faults to its list; record and list must outlive it.
class RecordFields {
 public:
  // known_keys: the members the task reads; others are counted as unknown keys. Reports what the parser noted: a key
  // that occurs twice (warn), an unpaired surrogate escape in a known member (reject).
  RecordFields(const data::JsonRecord& raw, std::initializer_list<const char*> known_keys, prepare::FaultList& faults);

  // The member, or null when it is absent or its value is null.
  const Json* find(const char* key) const;

  // The same, reporting missing_field (reject), and wrong_type (reject) when it is of another type.
  const Json* required(const char* key, Json::value_t type);

  // The text of a value that must be a string: reports wrong_type (reject) and returns "" if it is not one; reports
  // bad_character (warn) if it contains U+0000 or U+FFFD.
  std::string text(const FieldPath& field, const Json& value);
  void check_text(const FieldPath& field, std::string_view text);  // the same for a string

  void wrong_type(const FieldPath& field, const char* expected, const Json& got);
  prepare::FaultList& faults() { return faults_; }

 private:
  bool is_known(const std::string& field) const;
  void report_notes();
  void count_unknown_keys();

  const data::JsonRecord& raw_;
  std::vector<std::string> known_keys_;
  prepare::FaultList& faults_;
  std::unordered_set<std::string_view> unpaired_surrogates_;  // fields
};

}  // namespace etc::text
