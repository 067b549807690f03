// What a preparation is expected to take, before it runs.
//
// The beginning of the inputs is prepared as they would be, and the result dropped. Time and output grow with the inputs'
// bytes. Memory does not, but for what a run keeps of every record (Preparation::kept_bytes).
#pragma once

#include <cstdint>

#include "etc_core/base/process_memory.h"
#include "tasks/prepare/run.h"

namespace etc::prepare {

struct Forecast {
  InputSize sample, all;  // equal where the inputs are so short that all of them was prepared
  std::int64_t output_bytes = 0;
  std::int64_t disk_bytes = 0;  // the most while it is made: with its report and the finished parts beside it
  double seconds = 0;
  ProcessMemory memory;  // of the process: the peak
};

// Several windows of records (record_walk.h), so that the sample holds as much at a time as the run will.
inline constexpr std::int64_t kSampleBytes = 24'000'000;

// Prepares about sample_bytes of the inputs (where there are several, half as much of each at most) in a folder among
// the temporary files, which is removed again. A preparation's options count but for output, report and strict.
// Throws UsageError for inputs that are missing or double and for streams; Error where the beginning holds no record;
// Interrupted on SIGINT or SIGTERM.
Forecast forecast(const Preparation& preparation, const RunOptions& options, std::int64_t sample_bytes = kSampleBytes);

}  // namespace etc::prepare
