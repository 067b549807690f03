// One prepared data set, independent of its storage: a table of examples, each with named features.
//
// This is the project's own HDF5 layout (section 8 of every task specification) seen from outside: a Schema lists the
// features and their kinds; DatasetWriter appends examples in source order; DatasetReader returns them by index. Only
// data/h5/ includes HDF5. Order, sharding and batches: data/loader/loader.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "etc_core/base/json_fwd.h"

namespace etc::data {

// Kinds of task-wikihop 8.1: one number per example, a list of numbers, one UTF-8 string, a list of strings.
enum class FeatureKind { scalar, ragged, string, strings };
enum class StoredType { u8, i8, i16, i32, i64, u32, f32 };

struct FeatureSpec {
  std::string name;  // path below the group; "/preprocess_config": the attribute, with every example read
  FeatureKind kind = FeatureKind::ragged;
  StoredType type = StoredType::i32;          // strings are u8
  std::string align;                          // length class ("long", "global", …) or empty
  std::optional<std::int64_t> missing_value;  // labels: a value that is illegal as data
  // What a reference with padded tensors has after the last element: nothing, a number, or a term of the task's
  // specification ("last"). Information only.
  std::variant<std::monostate, std::int64_t, std::string> pad_value;
  // Whether data sets of these settings (preprocess_config) hold the list; null: all do. The examples of the others have
  // an empty one.
  bool (*stored_with)(const Json& settings) = nullptr;
};

struct Schema {
  std::string task;  // "wikihop", "hotpotqa", "nq", "openkp"
  std::vector<FeatureSpec> features;
  // Align classes whose longest members are max_long_len and max_global_len (OpenKP counts its "vdom" as global).
  std::string long_align = "long";
  std::string global_align = "global";
  std::vector<FeatureSpec> gold = {};  // of the table /gold: a row per accepted record; empty: no such table
  // Columns of /rejects besides those of Fault; kind string or strings. A fault without a value has an empty one.
  std::vector<FeatureSpec> reject_features = {};

  const FeatureSpec& feature(std::string_view name) const;  // throws Error when absent
};

// One feature of one example. Numbers are widened: integers to int64, floats to float.
using FeatureValue = std::variant<std::int64_t, float, std::vector<std::int64_t>, std::vector<float>, std::string,
                                  std::vector<std::string>>;

// name → value; a writer expects exactly the schema's features.
using Example = std::map<std::string, FeatureValue, std::less<>>;

// Effect of a fault on the input (task-wikihop 9): fatal, the rest of the file is lost; reject, the record is refused;
// drop, the record is valid but left out; warn, the record is kept.
enum class Severity { fatal, reject, drop, warn };

// The enumerator's name, as files, reports and messages show it.
const char* severity_text(Severity severity);

// One row of /rejects and of the report (task-wikihop 8.1, 9).
struct Fault {
  std::string file;  // name without folder
  std::int64_t record_index = 0;
  std::int64_t byte_offset = 0;  // start of the record
  std::string id;
  std::string field;
  std::string code;
  Severity severity = Severity::reject;
  std::string message;
  Example details = {};  // of Schema::reject_features
};

struct SourceFile {
  std::string name;  // without folder
  std::int64_t bytes = 0;
  std::string sha256;
};

// An input file that could not be read to its end; the records after that place are missing from the data set.
struct MissingPart {
  std::string name;    // of the input file, without folder
  std::string reason;  // place and cause: "byte 813, line 1, column 814: the file ends inside a record"
};

struct DatasetInfo;  // dataset_info.h

// Writes one file under a temporary name and renames it into place in finish(); without finish() no file is left.
// Equal calls give byte-equal files. Not thread-safe: one thread calls it.
class DatasetWriter {
 public:
  // Of info, only task, split, vocab_sha256, preprocess_config, labelled, unicode_version and missing are used;
  // finish() sets the rest.
  DatasetWriter(const std::filesystem::path& path, const Schema& schema, const DatasetInfo& info);
  ~DatasetWriter();

  // Throws Error naming feature and example when a feature is missing, unknown, of another kind, out of its stored
  // type's range, or unequal in length to another of its align class.
  void append(const Example& example);
  void append_gold(const Example& row);  // of a schema with gold features; else an Error
  void add_fault(const Fault& fault);    // severity reject or drop; rows keep the order of the calls

  // Records in the file that it is incomplete, and why. Call before finish().
  void mark_missing(const MissingPart& part);

  // input_records, rejected and dropped count records, as in DatasetInfo. Throws Error unless /gold, if present, has
  // one row for each accepted record.
  void finish(const std::vector<SourceFile>& source_files, std::int64_t input_records, std::int64_t rejected,
              std::int64_t dropped);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// How the examples of a data set will be read.
enum class ReadOrder {
  any,   // decompressed blocks are cached up to the cache's capacity
  once,  // from the first to the last, each once: the cache holds only two blocks of each column
};

// Reads one or several files (shards in the order given) as one data set. Every file is first opened by a probe in a
// child process, so that a library crash on a damaged file becomes an Error. Load-time checks of task-wikihop 8.3.
// read() may be called from several threads; calls into the HDF5 library are serialised.
class DatasetReader {
 public:
  // Throws Error naming file and data set: not HDF5, other format_version, other task than the schema's, shards whose
  // task, vocabulary or configuration differ, damaged offsets, unreadable chunks, values outside their stored type,
  // strings that are not UTF-8, variable-length types, links or raw data that point outside the file. The meaning of
  // values (for example, ids below the vocabulary's size) is checked by the tasks, example by example.
  // Cost: everything is read once by the probe (about 0.2 GB of values a second); offsets stay in memory.
  DatasetReader(std::vector<std::filesystem::path> paths, const Schema& schema, ReadOrder order = ReadOrder::any);
  ~DatasetReader();

  const Schema& schema() const;
  std::int64_t size() const;  // examples over all shards
  // The first shard's info with counts, lengths, source files and missing parts over all shards; labelled if all shards
  // are.
  const DatasetInfo& info() const;
  std::vector<std::string> content_hashes() const;  // content_sha256 of each shard
  // "h5: <shard>: the data set is incomplete: <input file>: <reason>" for each missing part; empty if every shard is
  // complete.
  std::vector<std::string> missing_texts() const;
  Example read(std::int64_t index) const;

  // Bytes by which reading examples may grow the reader's memory: blocks are cached up to the cache's capacity.
  std::int64_t cache_growth() const;

  // Throws Error naming both values unless every shard was prepared with this vocabulary (64 hex digits).
  void require_vocabulary(std::string_view vocab_sha256) const;

  // Length of the align class ("long", "global") of every example, without reading the features. Throws Error when
  // no feature of the schema belongs to the class.
  std::span<const std::int64_t> lengths(std::string_view align) const;
  std::vector<Fault> faults() const;

  // Rows of /gold over all shards; none when the schema has no gold features.
  std::int64_t gold_size() const;
  Example read_gold(std::int64_t index) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Only the root attributes, for `etc info`.
DatasetInfo read_dataset_info(const std::filesystem::path& path);

}  // namespace etc::data
