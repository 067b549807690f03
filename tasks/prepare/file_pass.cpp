#include "tasks/prepare/file_pass.h"

namespace etc::prepare {

namespace {

// What of a record is left out of its JSON value.
struct LeftOut {
  data::UnreadMembers unread;
  data::FlatLists flat;
};

Converted convert(const Preparation& preparation, const LeftOut& left_out, data::RecordSlice& slice) {
  Converted converted;
  try {
    const data::JsonRecord parsed = data::parse_record(slice, left_out.unread, left_out.flat);
    std::string().swap(slice.text);  // a large record is not kept twice while it is converted
    if (!unreadable(preparation, parsed, converted.faults)) return preparation.convert(parsed);
  } catch (const data::InputFault& fault) {
    // A line stands for itself: the next one begins at the next line end, whatever this one holds.
    const bool alone = preparation.layout() == data::RecordLayout::lines && slice.cut_short.empty();
    if (!alone) throw;
    converted.faults.reject("", fault.code(), fault.what());
  }
  return converted;
}

}  // namespace

bool unreadable(const Preparation& preparation, const data::JsonRecord& record, FaultList& faults) {
  for (const data::JsonNote& note : record.notes) {
    if (note.kind != data::JsonNote::Kind::number_out_of_range) continue;
    faults.reject(note.field, preparation.out_of_range_code(note.field), "a number beyond the range of 64 bits");
    return true;
  }
  if (record.value.is_object()) return false;
  faults.reject("", "record_not_object", fmt::format("expected an object, got {}", record.value.type_name()));
  return true;
}

PassEnd pass_over_file(const Preparation& preparation, const std::filesystem::path& path,
                       const PassCallbacks& callbacks) {
  RecordWork<Converted> work;
  const LeftOut left_out{preparation.unread_members(), preparation.flat_lists()};
  work.work = [&](data::RecordSlice& slice) { return convert(preparation, left_out, slice); };
  work.deliver = [&](std::int64_t index, const data::TextPosition& begin, Converted&& converted) {
    callbacks.record({index, begin, std::move(converted)});
  };
  work.progress = callbacks.progress;
  work.source = callbacks.source;
  return walk_records(path, preparation.layout(), work);
}

}  // namespace etc::prepare
