// Reads golden HDF5 files, whatever their layout: variable-length strings, booleans, any number type, any rank.
//
// For test code only: the project's own files are read through data/dataset.h, which refuses variable-length types.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "etc_core/base/not_copied.h"

namespace etc::test {

template <typename T>
struct GoldenArray {
  std::vector<T> values;            // row-major
  std::vector<std::int64_t> shape;  // empty: a scalar
};

// What a reader leaves unread on purpose: patterns (`*` stands for any text) of data sets "group/data_set" and attributes
// "group@attribute", each with the reason.
using LeftUnread = std::map<std::string, std::string>;

// One open file. Object paths are like "group/data_set"; "" or "/" is the root. Every failure throws Error naming the
// file and the object. Not thread-safe.
//
// A number that no test reads may be wrong unnoticed. So a test that compares a file, or one of its groups, ends with
//   file.require_all_read(group);
// or, if it leaves something to other tests, with
//   file.require_all_read("", {{"builder*", "compared by tests/sparse/labels"}});
// Reads count per object of this class: has(), data_sets() and attributes() are no reads, the same file opened again starts
// with none.
class GoldenFile : NotCopied {
 public:
  explicit GoldenFile(std::filesystem::path path);
  ~GoldenFile();

  const std::filesystem::path& path() const { return path_; }
  bool has(const std::string& object) const;  // a group or a data set of this path exists

  // Names directly below a group, sorted.
  std::vector<std::string> groups(const std::string& group = "") const;
  std::vector<std::string> data_sets(const std::string& group = "") const;

  bool has_attribute(const std::string& object, const std::string& name) const;
  std::vector<std::string> attributes(const std::string& object) const;  // names, sorted
  std::string string_attribute(const std::string& object, const std::string& name) const;
  std::int64_t int_attribute(const std::string& object, const std::string& name) const;  // booleans are 0 and 1
  double real_attribute(const std::string& object, const std::string& name) const;
  std::vector<double> real_attributes(const std::string& object, const std::string& name) const;  // a list

  // Numbers of any stored type, including booleans, converted to T: float, double, int32_t, int64_t or uint8_t.
  template <typename T>
  GoldenArray<T> read(const std::string& data_set) const;

  // A visibility mask stored as zeros and ones; throws Error on any other number.
  std::vector<std::int32_t> read_mask(const std::string& data_set) const;

  // Strings, variable-length or fixed; a scalar gives one.
  std::vector<std::string> read_strings(const std::string& data_set) const;

  // The rows of a ragged feature stored as NAME/values and NAME/offsets.
  template <typename T>
  std::vector<std::vector<T>> read_ragged(const std::string& name) const {
    return cut_rows(read<T>(name + "/values").values, read<std::int64_t>(name + "/offsets").values);
  }
  std::vector<std::vector<std::string>> read_ragged_strings(const std::string& name) const {
    return cut_rows(read_strings(name + "/values"), read<std::int64_t>(name + "/offsets").values);
  }

  // Data sets and attributes of the group and below it that were not read, and empty groups ("group/"), sorted, without
  // those that a pattern names and without the root's texts (kind, description, note, provenance, source).
  std::vector<std::string> unread(const std::string& group = "", const LeftUnread& left = {}) const;
  // Throws Error naming them if there are any.
  void require_all_read(const std::string& group = "", const LeftUnread& left = {}) const;

 private:
  // Throws Error unless the rows are contiguous and cover all values.
  void check_offsets(const std::vector<std::int64_t>& offsets, std::size_t values) const;

  template <typename T>
  std::vector<std::vector<T>> cut_rows(const std::vector<T>& values, const std::vector<std::int64_t>& offsets) const {
    std::vector<std::vector<T>> rows;
    check_offsets(offsets, values.size());
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
      rows.emplace_back(values.begin() + offsets[i], values.begin() + offsets[i + 1]);
    }
    return rows;
  }

  void add_unread(const std::string& group, std::vector<std::string>& names) const;

  std::filesystem::path path_;
  std::int64_t file_;                   // an HDF5 identifier
  mutable std::set<std::string> read_;  // data sets "group/data_set" and attributes "group@attribute"
};

// The .h5 files of the golden folder whose root attribute `kind` is `kind`, sorted by name.
std::vector<std::filesystem::path> golden_files_of_kind(const std::string& kind);

}  // namespace etc::test
