// The records of a raw data set or prediction file, one after the other, for reading small parts of each.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "data/readers/record_slicer.h"
#include "tasks/text/json_field.h"

namespace etc::text {

// Calls visit for every record in order, plain or gzip; messages about it start with "FILE: record 17" (array) or
// "FILE: line 18" (lines). Throws Error naming file and position if the file cannot be read to its end: damaged gzip,
// invalid JSON, invalid UTF-8. If a key occurs twice in one object, the last value counts. Memory: one record.
void for_each_record(const std::filesystem::path& path, data::RecordLayout layout,
                     const std::function<void(const JsonField& record)>& visit);

// Throws Error naming the gold files if nothing to compare with was found in them; what: "record".
void require_gold(bool found, const std::vector<std::filesystem::path>& files, const std::string& what);

// The positions where ids were seen, so that the message for a repeated id can name the first one.
class IdPlaces {
 public:
  // Throws Error naming both positions when the id was seen before.
  void add(const std::string& id, const JsonField& record);

 private:
  std::map<std::string, std::string> first_;
};

}  // namespace etc::text
