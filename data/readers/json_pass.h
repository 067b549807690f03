// What reading a JSON file costs at least: simdjson alone, the whole file in one call. The yardstick of bench_json.
#pragma once

#include <cstdint>
#include <filesystem>

namespace etc::data {

// Loads the file and parses it as one document, whose memory is a multiple of the file's; returns the elements of its
// array. Throws Error naming the file when it cannot be read, is not JSON or is no array.
std::int64_t json_pass(const std::filesystem::path& path);

}  // namespace etc::data
