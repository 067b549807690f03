// What a task is to `etc prepare`: one raw record in, examples and faults out.
//
// The walk of one record: the preparation's reader gives it, its bytes and its place in the file (open_records),
// Preparation::convert_record makes examples of it (several records at a time, on all threads), and the writer takes
// them in source order. What a record's bytes mean is the preparation's own affair: json_preparation.h is the base of
// those whose records are JSON, another form derives from Preparation itself. tasks/README.md shows how to add a task.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "data/readers/byte_stream.h"
#include "data/readers/record_reader.h"
#include "etc_core/base/fields.h"
#include "etc_core/base/json.h"

namespace etc::prepare {

// Rows of the report that one record causes (task-wikihop 9). File, record, offset and id are filled in by the caller.
class FaultList {
 public:
  FaultList() = default;
  // What the functions below have made of another one.
  FaultList(std::vector<data::Fault> rows, std::vector<data::Fault> quiet_rows, std::vector<std::string> counted);

  void reject(const std::string& field, const std::string& code, const std::string& message);
  void drop(const std::string& field, const std::string& code, const std::string& message);
  void warn(const std::string& field, const std::string& code, const std::string& message);
  // A warning that is counted, but listed only on request.
  void warn_quietly(const std::string& field, const std::string& code, const std::string& message);
  void count(const std::string& what);  // ignored things that the summary counts: "unknown_key annotations"

  bool rejected() const { return rejected_; }
  bool dropped() const { return dropped_ && !rejected_; }
  bool warned() const { return warned_; }
  const std::vector<data::Fault>& rows() const { return rows_; }
  const std::vector<data::Fault>& quiet_rows() const { return quiet_rows_; }
  const std::vector<std::string>& counted() const { return counted_; }

 private:
  std::vector<data::Fault> rows_, quiet_rows_;
  std::vector<std::string> counted_;
  bool rejected_ = false, dropped_ = false, warned_ = false;
};

// The beginning of a text in quotes, for messages: a whole document would not do.
std::string quoted(std::string_view text);

struct Converted {
  std::string id;  // empty when unreadable
  // Ignored when a fault rejects or drops the record:
  std::vector<data::Example> examples;
  std::optional<data::Example> gold;  // where the schema has gold features
  FaultList faults;
  data::Example reject_details;  // of the schema's own columns of /rejects, for each row of this record there
};

// What the first pass asks of a record.
struct Candidate {
  std::string id;
  std::int64_t rank = 0;  // the larger the better
};

class WholeRun;  // run.h

// What of the inputs was, or is to be, prepared. Bytes are uncompressed ones, without targets.
struct InputSize {
  std::int64_t bytes = 0, records = 0, examples = 0;
};

class Preparation {
 public:
  virtual ~Preparation() = default;
  virtual const data::Schema& schema() const = 0;
  virtual const std::string& vocab_sha256() const = 0;
  virtual Json preprocess_config() const = 0;  // all settings that the examples depend on (task-wikihop 8.4)

  // The reader that knows how the records of this task's raw files are set apart. The stream outlives it.
  virtual std::unique_ptr<data::RecordReader> open_records(data::ByteStream& stream) const = 0;

  // Bad input is a fault of the record. Throws InputFault only when the record's text cannot be read at all; where the
  // record does not stand alone that ends the file. Uses the text up, so that a large record is not kept twice.
  // Thread-safe.
  virtual Converted convert_record(data::RecordSlice& record) const = 0;

  // For tasks whose examples are made of all records together: who does the whole run. Null: run.h goes from record to
  // record with what stands above.
  virtual const WholeRun* whole_run() const { return nullptr; }

  // Bytes that a run over so much comes to hold beyond what any run holds: the ids of all records, where none may come
  // twice. For the forecast (forecast.h).
  virtual std::int64_t kept_bytes(const InputSize& inputs) const;

  // For tasks that keep one record per id, the best of all input files: the name of the field that holds the id. A
  // first pass (first_pass.h) then asks the records of repeated ids for their rank; the others of an id are dropped as
  // "duplicate_<field>". Null: there is no such pass, and every record after the first of an id is rejected.
  virtual const char* unique_field() const { return nullptr; }

  // Of the first pass: the text of unique_field(), empty where the record has none and so no part in the choice. Leaves
  // the record readable. Thread-safe.
  virtual std::string unique_id(data::RecordSlice& /*record*/) const { return {}; }

  // Of the first pass; nullopt: the record takes no part, because convert_record() will reject it. Uses the text up.
  // Thread-safe.
  virtual std::optional<Candidate> candidate_of(data::RecordSlice& /*record*/) const { return std::nullopt; }
};

// Whether a record without usable labels is rejected, as training and evaluation want it, or taken all the same.
enum class Labels : bool { optional, required };

// What the raw files of a task are.
enum class InputKind {
  files,           // --input: each by itself
  parallel_texts,  // --source and --target: texts whose lines belong together
};

// The preparation of a task as its row of tasks/registry.h holds it.
struct PreparationKind {
  Fields settings;  // keys of the configuration; each is also an option (long_seq_len: --long-seq-len)
  // settings: every key with its value. Throws UsageError naming a value that cannot be meant, Error on damaged files.
  std::unique_ptr<Preparation> (*make)(const Json& settings, const std::filesystem::path& vocab, Labels labels);
  // Calls visit for every text of a raw file that a sentence splitter is to cut, for learning one, or a vocabulary, from
  // them. settings: every key with its value. What is no text is left out; Error where the file cannot be read on. Null:
  // the task cuts no sentences.
  void (*texts)(const std::filesystem::path& input, const Json& settings,
                const std::function<void(std::string_view)>& visit) = nullptr;
  InputKind inputs = InputKind::files;
  // `--learn-vocab`: learns a vocabulary of the task's own form, of this size, from all inputs and writes it. Null: the
  // form is WordPiece, learned from the texts.
  void (*learn)(const std::vector<std::filesystem::path>& inputs, const Json& settings, std::int64_t size,
                const std::filesystem::path& output) = nullptr;
};

// The settings overridden by `overrides`. Throws UsageError (`where` names the source): unknown key, with a suggestion;
// a value of another kind than the setting's.
Json with_overrides(const PreparationKind& kind, Json settings, const Json& overrides, const std::string& where);

}  // namespace etc::prepare
