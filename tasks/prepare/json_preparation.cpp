#include "tasks/prepare/json_preparation.h"

#include "data/readers/member_text.h"
#include "data/readers/open_records.h"

namespace etc::prepare {

const data::UnreadMembers& JsonPreparation::unread_members() const {
  static const data::UnreadMembers kNone;
  return kNone;
}

const data::FlatLists& JsonPreparation::flat_lists() const {
  static const data::FlatLists kNone;
  return kNone;
}

std::unique_ptr<data::RecordReader> JsonPreparation::open_records(data::ByteStream& stream) const {
  return data::open_records(stream, layout());
}

Converted JsonPreparation::convert_record(data::RecordSlice& record) const {
  const data::JsonRecord parsed = data::parse_record(record, unread_members(), flat_lists());
  std::string().swap(record.text);  // so that a large record is not held twice while it is converted
  Converted converted;
  if (unreadable(*this, parsed, converted.faults)) return converted;
  return convert(parsed);
}

std::string JsonPreparation::unique_id(data::RecordSlice& record) const {
  const char* field = unique_field();
  if (auto id = data::member_text(record, field)) return std::move(*id);
  data::RecordSlice copy = record;  // parsing may change the text
  try {
    const data::JsonRecord parsed = data::parse_record(copy);
    const auto id = parsed.value.find(field);
    if (id != parsed.value.end() && id->is_string()) return id->get<std::string>();
  } catch (const data::InputFault&) {
  }
  return {};
}

std::optional<Candidate> JsonPreparation::candidate_of(data::RecordSlice& record) const {
  try {
    const data::JsonRecord parsed = data::parse_record(record, unread_members());
    FaultList ignored;
    if (!unreadable(*this, parsed, ignored)) return candidate(parsed);
  } catch (const data::InputFault&) {
  }
  return std::nullopt;
}

bool unreadable(const JsonPreparation& preparation, const data::JsonRecord& record, FaultList& faults) {
  for (const data::JsonNote& note : record.notes) {
    if (note.kind != data::JsonNote::Kind::number_out_of_range) continue;
    faults.reject(note.field, preparation.out_of_range_code(note.field), "a number beyond the range of 64 bits");
    return true;
  }
  if (record.value.is_object()) return false;
  faults.reject("", "record_not_object", fmt::format("expected an object, got {}", record.value.type_name()));
  return true;
}

}  // namespace etc::prepare
