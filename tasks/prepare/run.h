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

// The disk space of the finished parts beside the output when it is complete, which is their maximum.
struct PartsRoom {
  std::int64_t bytes = 0;
  std::size_t inputs = 0;  // how many of the inputs have parts, from the first on
};

struct RunOptions {
  std::vector<std::filesystem::path> inputs;
  std::vector<std::filesystem::path> targets;  // for InputKind::parallel_texts: the translation of each input, or none
  std::filesystem::path output;
  std::filesystem::path report;
  std::string split;  // one of kSplits
  bool labelled = true;
  bool strict = false;                // the first rejected record ends the run with an Error, and nothing is written
  bool list_truncated = false;        // also list rows for shortened records
  Communicator* processes = nullptr;  // processes that share the work; null: one. See run()
  PartsRoom* parts_room = nullptr;    // for the forecast: receives that of this run; null: not wanted
};

// A preparation's own implementation of the run from inputs to output and report (Preparation::whole_run). It must keep
// the guarantees of run(): both are complete or absent, equal bytes for any number of threads and processes and after a
// kill, and the same errors.
class WholeRun {
 public:
  virtual ~WholeRun() = default;
  // With several processes all call it; the counts of the first one are valid.
  virtual Counts run(const RunOptions& options) const = 0;
};

// Reads the input files in order and writes output and report, both completely or not at all. A file that cannot be
// read to its end (counts.fatal) counts up to the fault. With several input files, finished ones are kept beside the
// output and not read again by the same call after a kill; the output is the same, byte for byte, in either case. They
// are kept beside the report instead if the output is a device or a FIFO. Throws UsageError for inputs that are given
// twice; Interrupted on SIGINT or SIGTERM; Error when reading or writing fails. Memory does not grow with the
// files' sizes, except for the ids of all records. Several processes call it with equal options and get equal counts;
// each reads the inputs and works on its own share of the records, and the first one writes. In that case throws
// UsageError for a stream.
Counts run(const Preparation& preparation, const RunOptions& options);

}  // namespace etc::prepare
