// Common parts of all runs of a preparation: checks of the inputs, the metadata written about them, and the faults
// found in them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "tasks/prepare/file_pass.h"
#include "tasks/prepare/report.h"
#include "tasks/prepare/run.h"

namespace etc::prepare {

// Inputs, then targets.
std::vector<std::filesystem::path> files_of(const RunOptions& options);

// Throws UsageError for inputs that are missing or given twice, and for a stream if a file is required.
void check_files(const Preparation& preparation, const std::vector<std::filesystem::path>& inputs);

// The bytes of all inputs, which must be there; 0 if one is a stream.
std::int64_t readable_bytes(const std::vector<std::filesystem::path>& inputs);

// Name, size and SHA-256 of each input; for a stream only the name. Errors as check_files().
std::vector<data::SourceFile> check_inputs(const Preparation& preparation, const RunOptions& options);

// The total of all inputs; 0 when one is a stream.
std::int64_t total_bytes(const std::vector<data::SourceFile>& sources);

// Everything besides the input files that determines the output.
Json run_configuration(const Preparation& preparation, const RunOptions& options);
data::DatasetInfo dataset_info(const Preparation& preparation, const RunOptions& options);

// The file beside which finished parts are kept: not the output if that is a device or a FIFO.
const std::filesystem::path& place_of_parts(const RunOptions& options);

// The unit of the progress display.
struct ProgressUnit {
  std::int64_t bytes;
  const char* name;
};
ProgressUnit progress_unit(std::int64_t total_bytes);

// Collects rows of the report about one input file.
class InputFaults {
 public:
  InputFaults(std::string file, Report& report, Counts& counts)
      : file_(std::move(file)), report_(report), counts_(counts) {}

  // Receives the rows of records that are left out; may be null.
  std::function<void(const data::Fault&)> keep;

  void add(data::Fault fault, bool listed = true);
  void warn(const std::string& code, const std::string& message);  // about the file as a whole
  // Rows and counted items of a record; quiet rows are listed on request.
  void add_record(const PassRecord& record, bool list_quiet);
  // Adds the notes of the file, and why it could not be read to its end. unit: the name of the items read before,
  // "records".
  void add_end(const PassEnd& end, const char* unit);

 private:
  void note_first(const PassRecord& record);

  std::string file_;
  Report& report_;
  Counts& counts_;
};

// Throws the Error that ends a run with RunOptions::strict at a rejected record of this file.
[[noreturn]] void fail_strictly(const std::string& file, std::int64_t record, const FaultList& faults);
// The same for a part of an earlier run without `strict`: throws if a record of the part was rejected.
void check_part_strictly(const Counts& part, const RunOptions& options);

}  // namespace etc::prepare
