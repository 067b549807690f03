// The interface of a task for `etc prepare`: one raw record in, examples and faults out.
//
// Flow of one record: the preparation's reader returns its bytes and its position in the file (open_records),
// Preparation::convert_record makes examples from it (several records at a time, on all threads), and the writer takes
// them in source order. The preparation interprets a record's bytes: json_preparation.h is the base class for JSON
// records; preparations of other formats derive from Preparation itself. tasks/README.md shows how to add a task.
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
#include "etc_core/base/json_fwd.h"

namespace etc::prepare {

// Rows of the report caused by one record (task-wikihop 9). File, record, offset and id are filled in by the caller.
class FaultList {
 public:
  FaultList() = default;
  // Restores the content of another list, as made by the functions below.
  FaultList(std::vector<data::Fault> rows, std::vector<data::Fault> quiet_rows, std::vector<std::string> counted);

  void reject(const std::string& field, const std::string& code, const std::string& message);
  void drop(const std::string& field, const std::string& code, const std::string& message);
  void warn(const std::string& field, const std::string& code, const std::string& message);
  // A warning that is counted, but listed only on request.
  void warn_quietly(const std::string& field, const std::string& code, const std::string& message);
  void count(const std::string& what);  // ignored items that the summary counts: "unknown_key annotations"

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

// The beginning of a text in quotes, for messages: a whole document would be too long.
std::string quoted(std::string_view text);

struct Converted {
  std::string id;  // empty when unreadable
  // Ignored when a fault rejects or drops the record:
  std::vector<data::Example> examples;
  std::optional<data::Example> gold;  // if the schema has gold features
  FaultList faults;
  data::Example reject_details;  // values of the schema's own columns of /rejects, for each row of this record there
  // For tasks with a first pass: the record took part in it. If another record of its id is kept, faults that only show
  // when the examples are made do not matter.
  bool was_candidate = false;
};

// A record's part in the first pass.
struct Candidate {
  std::string id;
  std::int64_t rank = 0;  // the larger the better
};

class WholeRun;  // run.h

// The amount of input that was, or is to be, prepared. Bytes are uncompressed, without targets.
struct InputSize {
  std::int64_t bytes = 0, records = 0, examples = 0;
};

class Preparation {
 public:
  virtual ~Preparation() = default;
  virtual const data::Schema& schema() const = 0;
  virtual const std::string& vocab_sha256() const = 0;
  virtual Json preprocess_config() const = 0;  // all settings that the examples depend on (task-wikihop 8.4)

  // A reader that knows how the records in this task's raw files are separated. The stream outlives it.
  virtual std::unique_ptr<data::RecordReader> open_records(data::ByteStream& stream) const = 0;

  // Invalid input is a fault of the record. Throws InputFault only when the record's text cannot be read at all, which
  // ends the file unless the record stands alone. Consumes the text, so that a large record is not held twice.
  // Thread-safe.
  virtual Converted convert_record(data::RecordSlice& record) const = 0;

  // The text of a record, as open_records() returns it, for a record given as JSON by a request or from Python. Throws
  // Error beginning with `what`. By default they are the same.
  virtual std::string text_of_json(std::string json, const std::string& /*what*/) const { return json; }

  // For tasks whose examples are made from all records together: performs the whole run. Null: run.h processes record
  // by record with the functions above.
  virtual const WholeRun* whole_run() const { return nullptr; }

  // Memory that grows with the size of a run: the ids of all records, if none may occur twice. For the forecast
  // (forecast.h).
  virtual std::int64_t kept_bytes(const InputSize& inputs) const;

  // The member of a record that holds its id, for the report.
  virtual const char* id_field() const { return "id"; }

  // For tasks that keep one record per id, the best of all input files: the name of the field that holds the id. A
  // first pass (first_pass.h) then ranks the records of repeated ids; the others with the same id are dropped as
  // "duplicate_<field>". Null: there is no such pass, and every record after the first with an id is rejected.
  virtual const char* unique_field() const { return nullptr; }

  // For the first pass: the text of unique_field(), empty if the record has none and therefore does not take part in
  // the choice. Leaves the record readable. Thread-safe.
  virtual std::string unique_id(data::RecordSlice& /*record*/) const { return {}; }

  // For the first pass; nullopt: the record does not take part, because convert_record() will reject it. Consumes the
  // text. Thread-safe.
  virtual std::optional<Candidate> candidate_of(data::RecordSlice& /*record*/) const { return std::nullopt; }
};

// Whether a record without usable labels is rejected, as for training and evaluation, or accepted.
enum class Labels : bool { optional, required };

// The kinds of raw files of a task.
enum class InputKind {
  files,           // --input: independent files
  parallel_texts,  // --source and --target: texts whose lines correspond
};

// The preparation of a task as stored in its row of tasks/registry.h.
struct PreparationKind {
  Fields settings;  // keys of the configuration; each is also an option (long_seq_len: --long-seq-len)
  // settings: every key with its value. Throws UsageError naming an invalid value, Error on damaged files.
  std::unique_ptr<Preparation> (*make)(const Json& settings, const std::filesystem::path& vocab, Labels labels);
  // Calls visit for every text of a raw file that a sentence splitter would split, for learning a splitter or a
  // vocabulary from them. settings: every key with its value. Items without text are skipped; throws Error if the file
  // cannot be read to its end. Null: the task does not split sentences.
  void (*texts)(const std::filesystem::path& input, const Json& settings,
                const std::function<void(std::string_view)>& visit) = nullptr;
  InputKind inputs = InputKind::files;
  // `--learn-vocab`: learns a vocabulary of the task's own kind, of this size, from all inputs and writes it. Null: the
  // kind is WordPiece, learned from the texts.
  void (*learn)(const std::vector<std::filesystem::path>& inputs, const Json& settings, std::int64_t size,
                const std::filesystem::path& output) = nullptr;
};

// The settings overridden by `overrides`. Throws UsageError (`where` names the source) for an unknown key, with a
// suggestion, and for a value of another type than the setting's.
Json with_overrides(const PreparationKind& kind, Json settings, const Json& overrides, const std::string& where);

}  // namespace etc::prepare
