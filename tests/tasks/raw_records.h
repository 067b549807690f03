// Raw records for tests of preparations.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "data/readers/json_record.h"
#include "data/readers/open_records.h"
#include "tasks/prepare/preparation.h"

namespace etc::test {

// All records of a raw file.
inline std::vector<data::JsonRecord> read_raw_records(const std::filesystem::path& path, data::RecordLayout layout) {
  data::ByteStream stream(path);
  const auto reader = data::open_records(stream, layout);
  std::vector<data::JsonRecord> records;
  for (data::RecordSlice slice; reader->next(slice);) records.push_back(data::parse_record(slice));
  return records;
}

// The same, read once for all tests of a program. The file must not change while they run.
inline const std::vector<data::JsonRecord>& shared_raw_records(const std::filesystem::path& path,
                                                               data::RecordLayout layout) {
  static std::map<std::filesystem::path, std::vector<data::JsonRecord>> read;
  const auto found = read.find(path);
  return found != read.end() ? found->second : read.emplace(path, read_raw_records(path, layout)).first->second;
}

// One record from its text.
inline data::JsonRecord raw_record(std::string text, std::int64_t index = 0) {
  data::RecordSlice slice;
  slice.index = index;
  slice.text = std::move(text);
  return data::parse_record(slice);
}

// "severity code field" of every row, quiet rows after the others.
inline std::vector<std::string> fault_words(const prepare::FaultList& faults) {
  std::vector<std::string> words;
  for (const auto* rows : {&faults.rows(), &faults.quiet_rows()}) {
    for (const data::Fault& row : *rows)
      words.push_back(data::severity_text(row.severity) + (" " + row.code) + " " + row.field);
  }
  return words;
}

// Whether the faults hold one of this severity and code.
inline bool has_fault(const prepare::FaultList& faults, data::Severity severity, const std::string& code) {
  for (const data::Fault& row : faults.rows()) {
    if (row.severity == severity && row.code == code) return true;
  }
  return false;
}

}  // namespace etc::test
