// Base class of preparations whose records are JSON objects: one array of them, or one per line.
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

  // record.value is an object. Invalid input is a fault, never an exception. Thread-safe.
  virtual Converted convert(const data::JsonRecord& record) const = 0;

  // Members of a record that convert() does not use.
  virtual const data::UnreadMembers& unread_members() const;

  // Lists of a record that are long and almost always of the same form: convert() finds such a list in
  // JsonRecord::columns.
  virtual const data::FlatLists& flat_lists() const;

  // The fault code for a number beyond 64 bits in this member of a record.
  virtual const char* out_of_range_code(const std::string& /*field*/) const { return "wrong_type"; }

  // candidate_of() for a record whose value is an object with a string in unique_field(). Thread-safe.
  virtual std::optional<Candidate> candidate(const data::JsonRecord& /*record*/) const { return std::nullopt; }

  std::unique_ptr<data::RecordReader> open_records(data::ByteStream& stream) const final;
  Converted convert_record(data::RecordSlice& record) const final;
  std::string unique_id(data::RecordSlice& record) const final;
  std::optional<Candidate> candidate_of(data::RecordSlice& record) const final;
};

// Reports faults, common to all tasks, that leave nothing to convert; true if there is one.
bool unreadable(const JsonPreparation& preparation, const data::JsonRecord& record, FaultList& faults);

}  // namespace etc::prepare
