// The report of a preparation: one JSON line per fault, and the counts of the summary (task-wikihop 9).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "data/dataset.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json_fwd.h"

namespace etc::prepare {

// For one input file or for all; accepted + rejected + dropped = records.
struct Counts {
  std::int64_t records = 0;
  std::int64_t examples = 0;
  std::int64_t rejected = 0;
  std::int64_t dropped = 0;
  std::int64_t warned = 0;                    // converted, with at least one warning
  bool fatal = false;                         // a file could not be read to its end
  std::map<std::string, std::int64_t> codes;  // rows per "severity code", and items that were only counted
  // The first record of each kind: "<file>, line <line>: <field>: <code>: <message>"; empty: none, or not due to a
  // single record.
  std::string first_rejected, first_dropped;

  void add(const Counts& other);
  std::string summary() const;  // lines "name: count"
};

// Logs, one line each, how many records were rejected and dropped, and where and why the first one was, for users who
// do not open the report, which lists all of them.
void warn_of_left_out(const Counts& counts, const std::filesystem::path& report);

Json json_of(const Counts& counts);
Counts counts_of(const Json& json);  // throws Error on anything but the above

// Converts a line of the report back to a fault, without details. Throws Error on anything else.
data::Fault fault_of(const Json& line);

// The report file, complete only after finish().
class Report {
 public:
  explicit Report(const std::filesystem::path& path) : file_(path) {}
  void add(const data::Fault& fault);
  void append(std::string_view lines) { file_.write(lines); }  // lines of another report
  void finish() { file_.commit(); }

 private:
  AtomicFile file_;
};

}  // namespace etc::prepare
