// A run that processes its inputs one after the other: keeps finished ones and finds them again, and shares the work
// among processes. The processing of an input is defined by the derived run.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "etc_core/base/not_copied.h"
#include "etc_core/base/progress.h"
#include "tasks/prepare/parts.h"
#include "tasks/prepare/report.h"
#include "tasks/prepare/run.h"
#include "tasks/prepare/run_inputs.h"
#include "tasks/train/stop_signal.h"

namespace etc::prepare {

// The destination of the records of one input.
struct Sink {
  data::DatasetWriter& writer;
  Report& report;
};

// An input: a file of RunOptions::inputs, with its translation if there are targets.
class PartedRun : NotCopied {
 public:
  // preparation must outlive the run.
  PartedRun(const Preparation& preparation, const RunOptions& options);
  virtual ~PartedRun() = default;

  // All inputs but the last are first written to parts of their own (parts.h); existing parts are reused. The output is
  // the same, byte for byte, in either case. With several processes the first one does this and the others help (and
  // get no counts).
  Counts execute();

 protected:
  // Called before the first input; sources() are known.
  virtual void begin() {}
  // Prepares input i into the sink. source: receives size and hash of a stream, which are known at its end; null for a
  // file. Called in the order of the inputs, after the previous ones are finished.
  virtual Counts prepare_input(std::size_t i, const Sink& sink, data::SourceFile* source) = 0;
  // The work of the other processes for the same input.
  virtual void help_with(std::size_t i) = 0;
  // Input i was found as a part of an earlier run.
  virtual void found_part(std::size_t /*i*/) {}
  // An example of a part is copied into the output.
  virtual void copied(const data::Example& /*example*/) {}
  // Called when the output is complete except for its end; counts of all inputs. Throws Error if it contains nothing.
  virtual void check(const Counts& /*counts*/) {}

  bool is_last(std::size_t i) const { return i + 1 == options_.inputs.size(); }
  PartFiles part_files(std::size_t i) const;
  const std::vector<data::SourceFile>& sources() const { return sources_; }  // inputs, then targets
  // The source that gets its size and hash while it is read, because it can be read only once; null for a file.
  data::SourceFile* stream_source(std::size_t index) {
    return sources_[index].sha256.empty() ? &sources_[index] : nullptr;
  }
  std::int64_t bytes_of_inputs() const { return input_bytes_; }  // 0 when one is a stream
  ProgressUnit unit() const { return unit_; }
  const Counts& counts_before() const { return done_; }  // of the inputs before this one
  // Called by a walk over an input with the bytes read so far.
  void update_progress(std::int64_t bytes_of_input, const std::string& note = {});
  void stop_if_asked() const;  // throws Interrupted
  // Handles the end of an input: its faults, and the output's incomplete mark if it could not be read to its end.
  void take_end(std::size_t i, const PassEnd& end, const char* unit, const Sink& sink, InputFaults& faults) const;

  const Preparation& preparation_;
  const RunOptions options_;

 private:
  Counts lead();
  void help();
  void finish_part(std::size_t i);
  void take_part(std::size_t i, const Sink& output);
  void call_helpers(bool needed) const;

  Parts parts_;
  StopSignal stop_signal_;
  std::vector<data::SourceFile> sources_;
  std::int64_t input_bytes_ = 0, bytes_before_ = 0;
  ProgressUnit unit_ = progress_unit(0);
  std::optional<Progress> progress_;
  std::size_t finished_parts_ = 0;
  Counts done_;
};

}  // namespace etc::prepare
