// What reading a JSON file costs at least: simdjson alone. The yardstick of bench_json.
#pragma once

#include <cstdint>
#include <filesystem>

#include "data/readers/record_slicer.h"

namespace etc::bench {

// Loads the file and parses it: an array as one document, whose memory is a multiple of the file's; lines one after the
// other, each of at most 32 MB. Returns the number of records. Throws Error naming the file when it cannot be read, is
// not JSON or no array.
std::int64_t json_pass(const std::filesystem::path& path, data::RecordLayout layout);

}  // namespace etc::bench
