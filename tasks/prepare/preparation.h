// What a task is to `etc prepare`: one raw record in, examples and faults out.
//
// The walk of one record: RecordSlicer cuts it from the file, parse_record makes it a JSON value, Preparation::convert
// makes examples of it (several records at a time, on all threads), and the writer takes them in source order. To add
// a task: derive from Preparation and add a line to preparation_kinds().
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/readers/json_record.h"

namespace etc::prepare {

// Rows of the report that one record causes (task-wikihop 9). File, record, offset and id are filled in by the caller.
class FaultList {
 public:
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

class Preparation {
 public:
  virtual ~Preparation() = default;
  virtual const data::Schema& schema() const = 0;
  virtual data::RecordLayout layout() const = 0;
  virtual const std::string& vocab_sha256() const = 0;
  virtual Json preprocess_config() const = 0;  // all settings that the examples depend on (task-wikihop 8.4)

  // Members of a record that convert() does not look at.
  virtual data::UnreadMembers unread_members() const { return {}; }

  // Lists of a record that are long and almost always of one form: convert() finds such a one in JsonRecord::columns.
  virtual data::FlatLists flat_lists() const { return {}; }

  // The code of the fault that a number of this member of a record is beyond 64 bits.
  virtual const char* out_of_range_code(const std::string& /*field*/) const { return "wrong_type"; }

  // record.value is an object. Bad input is a fault, never an exception. Thread-safe.
  virtual Converted convert(const data::JsonRecord& record) const = 0;

  // For tasks that keep one record per id, the best of all input files: the name of the field that holds the id, a
  // string of the record. A first pass (first_pass.h) then asks the records of repeated ids for their rank; the others
  // of an id are dropped as "duplicate_<field>". Null: there is no such pass, and every record after the first of an id
  // is rejected.
  virtual const char* unique_field() const { return nullptr; }

  // nullopt: the record takes no part, because convert() will reject it. record.value is an object. Thread-safe.
  virtual std::optional<Candidate> candidate(const data::JsonRecord&) const { return std::nullopt; }
};

// A key of the configuration with its default; each is also an option (long_seq_len: --long-seq-len).
struct Setting {
  std::string key;
  Json default_value;
  std::string help;
};

struct PreparationKind {
  std::string name;  // of the task
  std::vector<Setting> settings;
  // settings: every key with its value. Throws UsageError naming a value that cannot be meant, Error on damaged files.
  std::unique_ptr<Preparation> (*make)(const Json& settings, const std::filesystem::path& vocab, bool labels_required);
  // Calls visit for every text of a raw file that a sentence splitter is to cut, for learning one from them. What is no
  // text is left out; Error where the file cannot be read on. Null: the task cuts no sentences.
  void (*texts)(const std::filesystem::path& input, const std::function<void(std::string_view)>& visit) = nullptr;
};

const std::vector<PreparationKind>& preparation_kinds();
const PreparationKind& preparation_kind(const std::string& name);  // throws UsageError with a suggestion

// The defaults overridden by `overrides`. Throws UsageError (`where` names the source): unknown key, with a suggestion;
// a value of another type than the default's.
Json with_overrides(const PreparationKind& kind, Json settings, const Json& overrides, const std::string& where);

}  // namespace etc::prepare
