// The header of a file with a NumPy array (*.npy), formats 1 to 3:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace etc::data {

struct NpyHeader {
  std::string type;              // in words: "float32", "int16, big-endian"; as written if it is not of plain values
  std::int64_t value_bytes = 0;  // 0: not known
  bool column_major = false;     // Fortran's order
  std::vector<std::int64_t> shape;
  std::int64_t values = 0, bytes = 0;  // of the whole array
};

// Throws Error for a malformed header, and for a file that is shorter or longer than its values.
NpyHeader read_npy_header(const std::filesystem::path& path);

}  // namespace etc::data
