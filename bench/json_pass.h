// Lower bound for reading a JSON file: simdjson alone, to which bench_json compares.
#pragma once

#include <cstdint>
#include <filesystem>

#include "data/readers/record_slicer.h"

namespace etc::bench {

// Loads and parses the file. An array is parsed as one document, whose memory is a multiple of the file's; lines are
// parsed one after the other, each of at most 32 MB. Returns the number of records. Throws Error naming the file if it
// cannot be read, is not JSON or is not an array.
std::int64_t json_pass(const std::filesystem::path& path, data::RecordLayout layout);

}  // namespace etc::bench
