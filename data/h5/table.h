// One group of features: /examples, /rejects, and any further table of a task with the same four feature kinds
// (task-wikihop 8.1), such as the gold annotations of NQ.
//
// A feature is a group with the data sets `values`, `offsets` (ragged, string, strings) and `item_offsets` (strings).
// Features of one align class share one `offsets` by hard link.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "data/h5/block_cache.h"
#include "data/h5/column.h"
#include "etc_core/base/buffer.h"

namespace etc::data::h5 {

// Throws Error when feature names are empty, repeated or hold '/', strings are not u8, or an align class is given to a
// kind without a list of elements.
void check_features(const std::vector<FeatureSpec>& features, const std::string& where);

// The feature of a schema that is not stored with each example: the root attribute preprocess_config, as JSON text. The
// reader gives it to every example, for what is computed from an example and the settings of its preparation.
inline constexpr const char* kSettingsFeature = "/preprocess_config";
// The features of /examples: those of the schema that data sets of these settings hold, without the one above.
std::vector<FeatureSpec> stored_features(const Schema& schema, const Json& settings);
// The schema's other lists, all empty.
Example absent_features(const Schema& schema, const Json& settings);

// Columns of a schema's /rejects: Fault's members in their order, then the schema's own.
std::vector<FeatureSpec> fault_features(const Schema& schema);
Example example_of(const Fault& fault, const Schema& schema);
// Throws Error on an unknown severity; `where` names the file.
Fault fault_of(const Example& row, const Schema& schema, const std::string& where);

class TableWriter {
 public:
  // Creates the group and, in the order of `features`, everything below it. `where` names the file. Locked.
  TableWriter(hid_t file, const std::string& name, std::vector<FeatureSpec> features, const std::string& where);

  // Appends one row. Throws Error naming feature and row when the row does not fit the features; the table is then
  // unchanged. After a failed write (a full disk) the table is broken and every further call throws. Locked.
  void append(const Example& row);
  void flush();  // writes the last chunks; nothing is appended after it. Locked

  std::int64_t rows() const { return rows_; }
  std::int64_t longest(std::string_view align) const;  // largest length of the class so far; 0 for an unknown class
  // Absolute paths of all data sets; a shared data set is listed under each of its paths.
  const std::vector<std::string>& data_sets() const { return data_sets_; }

 private:
  struct Feature {
    FeatureSpec spec;
    std::string where;
    ColumnWriter values;
    std::optional<ColumnWriter> offsets;  // none: scalar, or linked to the first feature of the align class
    std::optional<ColumnWriter> item_offsets;
  };

  void create(hid_t table, const FeatureSpec& spec, const std::string& table_path);
  const FeatureValue& checked_value(const Feature& feature, const Example& row) const;
  void check_row(const Example& row) const;
  void require_whole() const;
  [[noreturn]] void fail_row(const Feature& feature, const Example& row, const std::string& what) const;
  static void append_value(Feature& feature, const FeatureValue& value);

  std::string where_;
  std::vector<Feature> features_;
  std::map<std::string, std::string, std::less<>> owners_;    // align class → feature that holds its offsets
  std::map<std::string, std::int64_t, std::less<>> longest_;  // align class → largest length
  std::vector<std::string> data_sets_;
  std::int64_t rows_ = 0;
  bool broken_ = false;  // a write failed part-way
};

class TableReader {
 public:
  // Opens and checks every feature: columns as ColumnReader does, lengths against `rows` (none: against the first
  // feature), offsets (start at 0, never decrease, end at the number of values) and equal offsets within an align
  // class. Keeps all offsets in memory. `where` names the file. Locked.
  TableReader(hid_t file, const std::string& name, const std::vector<FeatureSpec>& features,
              std::optional<std::int64_t> rows, std::uint64_t file_bytes, const std::string& where);

  std::int64_t rows() const { return rows_; }
  std::int64_t bytes() const;        // of all values, decompressed as in the cache
  std::int64_t block_bytes() const;  // of one block of each column

  // Values of all features of one row. Must not be locked: the cache takes the Lock.
  Example read(std::int64_t row, BlockCache& cache) const;

  // Offsets of an align class, rows + 1 of them; null when no feature belongs to it.
  const Buffer<std::int64_t>* borders(std::string_view align) const;

  // Reads everything once. Throws Error at a chunk that cannot be read, a value outside its feature's stored type or a
  // string that is not UTF-8. Locked.
  void scan() const;

 private:
  using Borders = std::shared_ptr<const Buffer<std::int64_t>>;
  struct Feature {
    FeatureSpec spec;
    std::unique_ptr<ColumnReader> values;  // on the heap: its address is the key of its blocks in the cache
    Borders offsets;                       // [rows+1], null: scalar
    Borders item_offsets;                  // [strings+1], null unless strings
  };

  void open(hid_t table, const FeatureSpec& spec, std::optional<std::int64_t>& rows, std::uint64_t file_bytes,
            const std::string& where);

  std::int64_t rows_ = 0;
  std::vector<Feature> features_;
};

}  // namespace etc::data::h5
