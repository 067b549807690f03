// The records of one input file through a task's conversion.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "tasks/prepare/preparation.h"
#include "tasks/prepare/record_walk.h"

namespace etc::prepare {

// One record as it leaves the conversion.
struct PassRecord {
  std::int64_t index = 0;
  data::TextPosition begin;
  Converted converted;
};

struct PassCallbacks {
  std::function<void(PassRecord&&)> record;               // in source order, one at a time, but from any thread
  std::function<void(std::int64_t file_bytes)> progress;  // bytes of the file read so far; may throw to stop
  data::SourceFile* source = nullptr;                     // RecordWork's
  Communicator* processes = nullptr;  // that share the work; records come to the first one. Null: one process
};

// The preparation's convert_record() over a file; see walk_records. A record that stands alone and cannot be read is a
// rejected one (of JSON: a line); any other such record ends the pass.
PassEnd pass_over_file(const Preparation& preparation, const std::filesystem::path& path,
                       const PassCallbacks& callbacks);

// What another process than the first does of such a pass that several share. Throws Interrupted after a stop signal.
void help_over_file(const Preparation& preparation, const std::filesystem::path& path, Communicator& processes);

// The same of a stream whose writer may wait for what becomes of a record before it writes the next: one record at a time,
// and progress() after each. A file goes faster through the other, which works on many records at once.
PassEnd pass_over_stream(const Preparation& preparation, const std::filesystem::path& path,
                         const PassCallbacks& callbacks);

}  // namespace etc::prepare
