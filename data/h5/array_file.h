// Plain numeric arrays of any rank in HDF5 files exchanged with other programs: the inputs and outputs of `etc encode`.
// The project's own data sets have their own layout (data/dataset.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace etc::data {

struct ArrayRequest {
  std::string name;
  bool floating = false;  // floats of 4 or 8 bytes; otherwise integers whose values fit into int32
  bool required = false;
};

struct NumericArray {
  std::vector<std::int64_t> shape;
  std::vector<std::int32_t> integers;  // row-major; empty when floating
  std::vector<float> floats;
};

// Reads the arrays asked for from one group; optional ones may be absent from the result. The file is first read by a
// probe in a child process.
// Throws Error naming file and data set when a required array is missing, when the group holds anything not asked for
//   (with a suggestion), and on another type, values outside int32, nan or inf, virtual or external data, unknown
//   filters, and shapes larger than the stored bytes can hold.
std::map<std::string, NumericArray> read_arrays(const std::filesystem::path& path, const std::string& group,
                                                const std::vector<ArrayRequest>& requests);

struct ArrayShape {
  std::string path;  // "outputs/long"
  std::vector<std::int64_t> shape;
};

// Every array of a file and its shape, sorted by path. Reads names and sizes only. Probed as above.
// Throws Error on damage, links that lead out of the file, and groups nested deeper than 16.
std::vector<ArrayShape> list_arrays(const std::filesystem::path& path);

// Writes arrays of floats or 64-bit integers under a temporary name and renames the file into place in finish();
// without finish() no file is left. Equal calls give byte-equal files.
class ArrayFileWriter {
 public:
  explicit ArrayFileWriter(const std::filesystem::path& path);
  ~ArrayFileWriter();

  enum class Numbers { floats, integers };  // stored as float32, int64

  // path: "outputs/layer_0/long"; missing groups are made.
  void create(const std::string& path, const std::vector<std::int64_t>& shape, Numbers numbers = Numbers::floats);
  // Rows [first, first + rows) along the first dimension; every row must be written once.
  void write_rows(const std::string& path, std::int64_t first, std::int64_t rows, const float* values);
  void write_rows(const std::string& path, std::int64_t first, std::int64_t rows, const std::int64_t* values);
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace etc::data
