// Forecast of the time, output and memory of a preparation.
//
// The beginning of the inputs is prepared like the whole, and the result is discarded. Time and output grow with the
// inputs' bytes. Memory does not, except for what a run keeps of every record (Preparation::kept_bytes).
#pragma once

#include <cstdint>

#include "etc_core/base/process_memory.h"
#include "tasks/prepare/run.h"

namespace etc::prepare {

struct Forecast {
  InputSize sample, all;  // equal if the inputs are so short that all of them was prepared
  std::int64_t output_bytes = 0;
  std::int64_t disk_bytes = 0;  // peak while it is made, including its report and the finished parts beside it
  double seconds = 0;
  ProcessMemory memory;  // peak of the process
};

// Several windows of records (record_walk.h), so that the sample holds as much at a time as the run will.
inline constexpr std::int64_t kSampleBytes = 24'000'000;

// Prepares about sample_bytes of the inputs (of several inputs at most half as much of each) in a temporary folder,
// which is removed again. Uses the options of a preparation except output, report and strict. Throws UsageError for
// inputs that are given twice and for streams; Error if one is missing or the beginning contains no record; Interrupted
// on SIGINT or SIGTERM.
Forecast forecast(const Preparation& preparation, const RunOptions& options, std::int64_t sample_bytes = kSampleBytes);

}  // namespace etc::prepare
