#include "tasks/prepare/file_pass.h"

#include <vector>

#include "etc_core/base/parallel.h"

namespace etc::prepare {

namespace {

// A window is full with this many records or bytes: enough for every thread to stay busy, little enough to hold twice.
constexpr std::size_t kWindowRecords = 128;
constexpr std::size_t kWindowBytes = 4u << 20;

struct WindowRecord {
  data::RecordSlice slice;
  PassRecord result;
  std::optional<data::InputFault> fault;
};

struct Window {
  std::vector<WindowRecord> records;
  std::optional<data::InputFault> end_fault;  // behind the last record
};

Window read_window(data::RecordSlicer& slicer) {
  Window window;
  try {
    std::size_t bytes = 0;
    while (window.records.size() < kWindowRecords && bytes < kWindowBytes) {
      data::RecordSlice slice;
      if (!slicer.next(slice)) break;
      bytes += slice.text.size();
      window.records.push_back({std::move(slice), {}, {}});
    }
  } catch (const data::InputFault& fault) {
    window.end_fault = fault;
  }
  return window;
}

// Faults of any task's records that leave nothing to convert; true if there is one.
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

// What of a record is left out of its JSON value.
struct LeftOut {
  data::UnreadMembers unread;
  data::FlatLists flat;
};

void convert(const Preparation& preparation, const Conversion& conversion, const LeftOut& left_out,
             WindowRecord& record) {
  record.result.index = record.slice.index;
  record.result.begin = record.slice.begin;
  try {
    const data::JsonRecord parsed = data::parse_record(record.slice, left_out.unread, left_out.flat);
    std::string().swap(record.slice.text);  // a large record is not kept twice while it is converted
    FaultList& faults = record.result.converted.faults;
    if (!unreadable(preparation, parsed, faults)) record.result.converted = conversion(parsed);
  } catch (const data::InputFault& fault) {
    // A line stands for itself: the next one begins at the next line end, whatever this one holds.
    const bool alone = preparation.layout() == data::RecordLayout::lines && record.slice.cut_short.empty();
    if (alone) {
      record.result.converted.faults.reject("", fault.code(), fault.what());
    } else {
      record.fault = fault;
    }
  }
  std::string().swap(record.slice.text);
}

}  // namespace

PassEnd pass_over_file(const Preparation& preparation, const std::filesystem::path& path,
                       const PassCallbacks& callbacks) {
  const auto convert = [&](const data::JsonRecord& record) { return preparation.convert(record); };
  return pass_over_file(preparation, convert, path, callbacks);
}

PassEnd pass_over_file(const Preparation& preparation, const Conversion& conversion, const std::filesystem::path& path,
                       const PassCallbacks& callbacks) {
  data::ByteStream stream(path);
  data::RecordSlicer slicer(stream, preparation.layout());
  const LeftOut left_out{preparation.unread_members(), preparation.flat_lists()};
  PassEnd end;
  const auto deliver = [&](Window& window) {
    for (WindowRecord& record : window.records) {
      if (end.fault) return;
      if (record.fault) {
        end.fault = record.fault;
        end.fault_record = record.slice.index;
        return;
      }
      end.fault_record = record.slice.index + 1;
      callbacks.record(std::move(record.result));
    }
    if (!end.fault) end.fault = window.end_fault;
  };

  Window done;                           // converted, not delivered yet
  Window current = read_window(slicer);  // read, not converted yet
  while (!current.records.empty() || current.end_fault) {
    Window next;
    // Task 0 delivers the window before and reads the one behind while the others convert this one.
    const auto tasks = static_cast<std::int64_t>(current.records.size()) + 1;
    parallel_for(tasks, [&](std::int64_t task) {
      if (task > 0)
        return convert(preparation, conversion, left_out, current.records[static_cast<std::size_t>(task - 1)]);
      deliver(done);
      if (!end.fault && !current.end_fault) next = read_window(slicer);
    });
    callbacks.progress(stream.position());
    done = std::move(current);
    current = std::move(next);
    if (end.fault) break;
  }
  deliver(done);
  end.byte_order_mark = slicer.byte_order_mark();
  end.empty_lines = slicer.empty_lines();
  return end;
}

}  // namespace etc::prepare
