#include "tasks/prepare/run_inputs.h"

#include <algorithm>
#include <utility>

#include "data/dataset_info.h"
#include "data/text/sha256.h"
#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "tasks/prepare/inputs.h"

namespace etc::prepare {

namespace {

namespace fs = std::filesystem;

constexpr const char* kWithoutStrict = "(without --strict it is reported and left out)";

data::SourceFile source_of(const fs::path& input) {
  if (input == data::kStandardInput) return {data::raw_file_text(input), 0, ""};
  if (is_stream(input)) return {input.filename().string(), 0, ""};
  return {input.filename().string(), static_cast<std::int64_t>(fs::file_size(input)), data::sha256_of_file(input)};
}

// A stream can be read only once, so it is refused if the inputs must be read more often.
void check_stream(const Preparation& preparation, const fs::path& input, bool is_last) {
  if (preparation.unique_field() != nullptr) {
    fail_usage("etc prepare",
               "input {}: task {} reads its input twice, first to choose one record of each {}: expected a file, got "
               "a stream (save it to a file first; .gz is read as it is)",
               input.string(), preparation.schema().task, preparation.unique_field());
  }
  if (!is_last) {
    fail_usage("etc prepare",
               "input {}: of several inputs only the last may be a stream: finished parts of the others are "
               "found again by the SHA-256 of their files (save it to a file first, or give it last)",
               input.string());
  }
}

}  // namespace

std::vector<fs::path> files_of(const RunOptions& options) {
  std::vector<fs::path> files = options.inputs;
  files.insert(files.end(), options.targets.begin(), options.targets.end());
  return files;
}

void check_files(const Preparation& preparation, const std::vector<fs::path>& inputs) {
  for (const fs::path& input : inputs) {
    check_input(input);
    if (is_stream(input)) check_stream(preparation, input, &input == &inputs.back());
    for (const fs::path& other : inputs) {
      if (&other != &input && same_file(input, other)) {
        fail_usage("etc prepare", "input {} is given twice", input.string());
      }
    }
  }
}

std::vector<data::SourceFile> check_inputs(const Preparation& preparation, const RunOptions& options) {
  const std::vector<fs::path> inputs = files_of(options);
  check_files(preparation, inputs);
  std::vector<data::SourceFile> sources;
  for (const fs::path& input : inputs) sources.push_back(source_of(input));
  return sources;
}

std::int64_t readable_bytes(const std::vector<std::filesystem::path>& inputs) {
  if (std::any_of(inputs.begin(), inputs.end(), is_stream)) return 0;
  std::int64_t bytes = 0;
  for (const auto& input : inputs) bytes += static_cast<std::int64_t>(std::filesystem::file_size(input));
  return bytes;
}

std::int64_t total_bytes(const std::vector<data::SourceFile>& sources) {
  std::int64_t total = 0;
  for (const data::SourceFile& source : sources) {
    if (source.sha256.empty()) return 0;
    total += source.bytes;
  }
  return total;
}

Json run_configuration(const Preparation& preparation, const RunOptions& options) {
  return {{"preprocess_config", preparation.preprocess_config()},
          {"vocab_sha256", preparation.vocab_sha256()},
          {"split", options.split},
          {"labelled", options.labelled},
          {"list_truncated", options.list_truncated},
          {"unicode_version", data::unicode_version()}};
}

data::DatasetInfo dataset_info(const Preparation& preparation, const RunOptions& options) {
  data::DatasetInfo info;
  info.task = preparation.schema().task;
  info.split = options.split;
  info.vocab_sha256 = preparation.vocab_sha256();
  info.preprocess_config = preparation.preprocess_config();
  info.labelled = options.labelled;
  info.unicode_version = data::unicode_version();
  return info;
}

const fs::path& place_of_parts(const RunOptions& options) {
  const bool special = find_output_target(options.output).kind == OutputTarget::Kind::in_place;
  return special ? options.report : options.output;
}

ProgressUnit progress_unit(std::int64_t total_bytes) {
  constexpr std::int64_t kMegabyte = 1000000, kFewMegabytes = 10 * kMegabyte;
  const bool small = total_bytes > 0 && total_bytes < kFewMegabytes;
  return small ? ProgressUnit{1000, "KB"} : ProgressUnit{kMegabyte, "MB"};
}

void InputFaults::add(data::Fault fault, bool listed) {
  ++counts_.codes[fmt::format("{} {}", data::severity_text(fault.severity), fault.code)];
  fault.file = file_;
  if (listed) report_.add(fault);
  const bool left_out = fault.severity == data::Severity::reject || fault.severity == data::Severity::drop;
  if (left_out && keep) keep(fault);
}

void InputFaults::warn(const std::string& code, const std::string& message) {
  data::Fault fault;
  fault.code = code;
  fault.severity = data::Severity::warn;
  fault.message = message;
  add(std::move(fault));
}

// Notes where and why the record was left out, if it is the first one.
void InputFaults::note_first(const PassRecord& record) {
  using data::Severity;
  const FaultList& faults = record.converted.faults;
  if (!faults.rejected() && !faults.dropped()) return;
  const Severity severity = faults.rejected() ? Severity::reject : Severity::drop;
  std::string& first = faults.rejected() ? counts_.first_rejected : counts_.first_dropped;
  if (!first.empty()) return;
  const auto row = std::find_if(faults.rows().begin(), faults.rows().end(),
                                [&](const data::Fault& fault) { return fault.severity == severity; });
  const std::string line = fmt::format("line {}: ", record.begin.line);
  const bool says_line = row->message.starts_with(line);  // messages about tables do
  first = fmt::format("{}, {}{}{}{}: {}", file_, line, row->field, row->field.empty() ? "" : ": ", row->code,
                      row->message.substr(says_line ? line.size() : 0));
}

void InputFaults::add_record(const PassRecord& record, bool list_quiet) {
  const FaultList& faults = record.converted.faults;
  note_first(record);
  const auto add_rows = [&](const std::vector<data::Fault>& rows, bool listed) {
    for (data::Fault row : rows) {
      row.record_index = record.index;
      row.byte_offset = record.begin.byte_offset;
      row.id = record.converted.id;
      row.details = record.converted.reject_details;
      add(std::move(row), listed);
    }
  };
  add_rows(faults.rows(), true);
  add_rows(faults.quiet_rows(), list_quiet);
  for (const std::string& what : faults.counted()) ++counts_.codes["ignored " + what];
}

void InputFaults::add_end(const PassEnd& end, const char* unit) {
  for (const data::FileNote& note : end.notes) warn(note.code, note.message);
  if (!end.fault) return;
  counts_.fatal = true;
  data::Fault fault;
  fault.record_index = end.fault_record;
  fault.byte_offset = end.fault->where().byte_offset;
  fault.code = end.fault->code();
  fault.severity = data::Severity::fatal;
  fault.message = end.fault->what();
  log::warn("prepare: {}: {} ({} {} before it are kept)", file_, fault.message, end.fault_record, unit);
  add(std::move(fault));
}

void fail_strictly(const std::string& file, std::int64_t record, const FaultList& faults) {
  for (const data::Fault& row : faults.rows()) {
    if (row.severity != data::Severity::reject) continue;
    fail("prepare", "{}: record {}: {}: {}: {} {}", file, record, row.field, row.code, row.message, kWithoutStrict);
  }
  fail("prepare", "{}: record {} is rejected", file, record);
}

void check_part_strictly(const Counts& part, const RunOptions& options) {
  if (!options.strict || part.rejected == 0) return;
  fail("prepare", "{} {}", part.first_rejected, kWithoutStrict);
}

}  // namespace etc::prepare
