// One input file from front to back: cut, parse and convert its records on all threads, deliver them in source order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "data/readers/record_slicer.h"
#include "tasks/prepare/preparation.h"

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
};

struct PassEnd {
  std::optional<data::InputFault> fault;  // why the file could not be read to its end
  std::int64_t fault_record = 0;          // index of the record it lies in or before
  bool byte_order_mark = false;
  std::int64_t empty_lines = 0;  // where records are lines
};

using Conversion = std::function<Converted(const data::JsonRecord& record)>;  // thread-safe

// `conversion` in the place of the preparation's convert(): what else a task wants to know of its records.
// Where records are lines, one that is no JSON is a rejected record; in an array it ends the pass.
// Memory: two windows of records (a few MB, or one record where that is larger), whatever the file's size. What is in a
// window depends on the file alone, so the callbacks see the same for any number of threads.
PassEnd pass_over_file(const Preparation& preparation, const Conversion& conversion, const std::filesystem::path& path,
                       const PassCallbacks& callbacks);

// With the preparation's own convert().
PassEnd pass_over_file(const Preparation& preparation, const std::filesystem::path& path,
                       const PassCallbacks& callbacks);

}  // namespace etc::prepare
