// Passes the records of one input file through a task's conversion.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "tasks/prepare/preparation.h"
#include "tasks/prepare/record_walk.h"

namespace etc::prepare {

// One record after its conversion.
struct PassRecord {
  std::int64_t index = 0;
  data::TextPosition begin;
  Converted converted;
};

struct PassCallbacks {
  std::function<void(PassRecord&&)> record;               // in source order, one at a time, but from any thread
  std::function<void(std::int64_t file_bytes)> progress;  // bytes of the file read so far; may throw to stop
  data::SourceFile* source = nullptr;                     // as in RecordWork
  Communicator* processes = nullptr;  // share the work; the first one receives the records. Null: one process
};

// The preparation's convert_record(). An unreadable record that stands alone (in JSON lines: a line) is rejected; for any
// other one InputFault is thrown.
Converted converted_or_rejected(const Preparation& preparation, data::RecordSlice& record);

// Applies the preparation's convert_record() to a file; see walk_records. An unreadable record that stands alone (in
// JSON lines: a line) is rejected; any other unreadable record ends the pass.
PassEnd pass_over_file(const Preparation& preparation, const std::filesystem::path& path,
                       const PassCallbacks& callbacks);

// The part of the other processes in such a shared pass. Throws Interrupted after a stop signal.
void help_over_file(const Preparation& preparation, const std::filesystem::path& path, Communicator& processes);

// The same for a stream whose writer may wait for the result of a record before it writes the next: one record at a
// time, with progress() after each. For a file, pass_over_file() is faster because it works on many records at once.
PassEnd pass_over_stream(const Preparation& preparation, const std::filesystem::path& path,
                         const PassCallbacks& callbacks);

}  // namespace etc::prepare
