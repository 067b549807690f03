// Writes and changes HDF5 files in all ways that the data set reader must accept or reject. For its tests only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "etc_core/base/not_copied.h"

namespace etc::test {

// One file open for changes. Paths are absolute ("/examples/id/values"); missing groups are created. put… replaces existing
// objects. Every failure throws Error. Not thread-safe; no data set reader may be active at the same time.
class H5Edit : NotCopied {
 public:
  explicit H5Edit(const std::filesystem::path& path);  // creates the file when it does not exist
  ~H5Edit();

  // How a data set is stored.
  struct Storage {
    std::int64_t chunk = 0;  // elements; 0: contiguous
    bool deflate = false;
    bool big_endian = false;
  };

  // Integers of `bytes` bytes with the given shape (empty: one dimension of values.size()).
  void put_integers(const std::string& path, const std::vector<std::int64_t>& values, int bytes, bool is_signed,
                    std::vector<std::int64_t> shape, Storage storage);
  void put_integers(const std::string& path, const std::vector<std::int64_t>& values, int bytes = 8,
                    bool is_signed = true) {
    put_integers(path, values, bytes, is_signed, {}, {});
  }
  void put_floats(const std::string& path, const std::vector<double>& values, int bytes);
  void put_variable_strings(const std::string& path, const std::vector<std::string>& values);
  // One dimension of `length` bytes in chunks of `chunk`, with nothing stored.
  void put_unwritten(const std::string& path, std::int64_t length, std::int64_t chunk);
  void put_external(const std::string& path, const std::filesystem::path& raw, std::int64_t length);
  void put_virtual(const std::string& path, const std::filesystem::path& source, std::int64_t length);
  void put_scale_offset(const std::string& path, const std::vector<std::int64_t>& values);  // an unsupported filter

  void put_soft_link(const std::string& path, const std::string& target);
  void put_external_link(const std::string& path, const std::filesystem::path& file, const std::string& target);
  void remove(const std::string& path);
  void scale_element(const std::string& path, std::int64_t index, double factor);  // in a numeric data set
  void shift_element(const std::string& path, std::int64_t index, double by);

  // Attributes of an object ("/" is the root).
  void put_attribute(const std::string& object, const std::string& name, std::int64_t value);
  void put_attribute(const std::string& object, const std::string& name, const std::string& fixed_text);
  void put_list_attribute(const std::string& object, const std::string& name, std::int64_t length);
  void put_variable_attribute(const std::string& object, const std::string& name, const std::string& text);
  void put_float_attribute(const std::string& object, const std::string& name, double value);
  void remove_attribute(const std::string& object, const std::string& name);

 private:
  void change_element(const std::string& path, std::int64_t index, const std::function<double(double)>& change);

  void clear(const std::string& path);

  std::string where_;
  std::int64_t file_;  // an HDF5 identifier
};

}  // namespace etc::test
