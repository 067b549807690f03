// The records of one input file as JSON values through a task's conversion.
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
};

// The preparation's convert() over a file; see walk_records. Where records are lines, one that is no JSON is a rejected
// record; in an array it ends the pass.
PassEnd pass_over_file(const Preparation& preparation, const std::filesystem::path& path,
                       const PassCallbacks& callbacks);

// Faults of any task's records that leave nothing to convert; true if there is one.
bool unreadable(const Preparation& preparation, const data::JsonRecord& record, FaultList& faults);

}  // namespace etc::prepare
