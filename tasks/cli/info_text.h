// `etc info` for text files and logs: metrics, reports, predictions, tables, TensorBoard events.
#pragma once

#include <filesystem>
#include <string>

#include "etc_core/base/json_fwd.h"

namespace etc::cli {

// One line of a description: the key, then the value in its own column.
void print_entry(const std::string& key, const std::string& value);

// The beginning of a JSON value on one line.
std::string example_text(const Json& json);

// metrics.jsonl of a run, the report of a preparation, n-best answers, predictions of OpenKP or other JSON objects,
// line by line. Lines that are not JSON objects are counted and named. Throws Error when no line is an object.
void describe_json_lines(const std::filesystem::path& path);

// A prediction file, or any other JSON document: the number of entries, and the first one.
void describe_json(const std::filesystem::path& path, const Json& json);

void describe_csv(const std::filesystem::path& path);

// Frames and checksums of an events file. Throws Error when it does not begin with an intact record.
void describe_events(const std::filesystem::path& path);

}  // namespace etc::cli
