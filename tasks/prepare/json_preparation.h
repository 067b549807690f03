// The base of preparations whose records are JSON objects: one array of them, or one a line.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "data/readers/json_record.h"
#include "tasks/prepare/preparation.h"

namespace etc::prepare {

class JsonPreparation : public Preparation {
 public:
  virtual data::RecordLayout layout() const = 0;

  // record.value is an object. Bad input is a fault, never an exception. Thread-safe.
  virtual Converted convert(const data::JsonRecord& record) const = 0;

  // Members of a record that convert() does not look at.
  virtual const data::UnreadMembers& unread_members() const;

  // Lists of a record that are long and almost always of one form: convert() finds such a one in JsonRecord::columns.
  virtual const data::FlatLists& flat_lists() const;

  // The code of the fault that a number of this member of a record is beyond 64 bits.
  virtual const char* out_of_range_code(const std::string& /*field*/) const { return "wrong_type"; }

  // candidate_of() a record whose value is an object; unique_field() is a string there. Thread-safe.
  virtual std::optional<Candidate> candidate(const data::JsonRecord& /*record*/) const { return std::nullopt; }

  std::unique_ptr<data::RecordReader> open_records(data::ByteStream& stream) const final;
  Converted convert_record(data::RecordSlice& record) const final;
  std::string unique_id(data::RecordSlice& record) const final;
  std::optional<Candidate> candidate_of(data::RecordSlice& record) const final;
};

// Faults of any task's records that leave nothing to convert; true if there is one.
bool unreadable(const JsonPreparation& preparation, const data::JsonRecord& record, FaultList& faults);

}  // namespace etc::prepare
