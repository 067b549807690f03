// `etc prepare` without its command line: raw files → one HDF5 data set and a report.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "etc_core/comm/communicator.h"
#include "tasks/prepare/preparation.h"
#include "tasks/prepare/report.h"

namespace etc::prepare {

inline constexpr const char* kSplits[] = {"train", "dev", "test"};  // test: answers may be missing

// What finished parts take beside the output when that is complete: never more, for they only grow until then.
struct PartsRoom {
  std::int64_t bytes = 0;
  std::size_t inputs = 0;  // how many of the inputs they are of, from the first on
};

struct RunOptions {
  std::vector<std::filesystem::path> inputs;
  std::vector<std::filesystem::path> targets;  // of InputKind::parallel_texts: a translation of each input, or none
  std::filesystem::path output;
  std::filesystem::path report;
  std::string split;  // one of kSplits
  bool labelled = true;
  bool strict = false;                // the first rejected record ends the run with an Error, and nothing is written
  bool list_truncated = false;        // rows for shortened records, too
  Communicator* processes = nullptr;  // that share the work; null: one. See run()
  PartsRoom* parts_room = nullptr;    // for the forecast: gets that of this run; null: not wanted
};

// A preparation's own way from the inputs to output and report (Preparation::whole_run). Keeps run()'s promises: both
// complete or not at all, equal bytes for any number of threads and processes and after a kill, its errors.
class WholeRun {
 public:
  virtual ~WholeRun() = default;
  // Of several processes all call it; the counts of the first one hold.
  virtual Counts run(const RunOptions& options) const = 0;
};

// Reads the input files in order and writes output and report, both complete or not at all. A file that cannot be read
// to its end (counts.fatal) counts up to the fault. Several input files: finished ones are kept beside the output and
// not read again by the same call after a kill; the output is the same, byte for byte, with and without.
// Beside the report instead, where the output is a device or a FIFO. Throws UsageError on inputs that are missing or
// double; Interrupted on SIGINT or SIGTERM; Error when reading or writing fails.
// Memory: flat in the files' sizes, but for the ids of all records.
// Several processes call it with equal options and get equal counts; each reads the inputs and works on its own share of
// the records, and the first one writes. Throws UsageError for a stream.
Counts run(const Preparation& preparation, const RunOptions& options);

}  // namespace etc::prepare
