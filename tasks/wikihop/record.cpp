#include "tasks/wikihop/record.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "data/text/unicode.h"
#include "tasks/wikihop/decode.h"

namespace etc::wikihop {

namespace {

std::string element(const char* field, std::size_t index) {
  return fmt::format("{}[{}]", field, index);
}

// Reads the members of one record and reports their faults.
class RecordReader {
 public:
  RecordReader(const data::JsonRecord& raw, const PrepareConfig& config, prepare::FaultList& faults)
      : raw_(raw), config_(config), faults_(faults) {}

  Record read() {
    report_notes();
    read_id();
    if (const Json* query = required("query", Json::value_t::string)) query_text(*query);
    read_candidates();
    read_answer();
    read_supports();
    count_unknown_keys();
    return std::move(record_);
  }

 private:
  using JsonNote = data::JsonNote;

  static bool is_known(const std::string& field) {
    const std::string key = field.substr(0, field.find_first_of(".["));
    return std::find(kRecordMembers.begin(), kRecordMembers.end(), key) != kRecordMembers.end();
  }

  void report_notes() {
    for (const JsonNote& note : raw_.notes) {
      if (note.kind == JsonNote::Kind::unpaired_surrogate) unpaired_surrogates_.insert(note.field);
      if (note.kind == JsonNote::Kind::duplicate_key) {
        faults_.warn(note.field, "duplicate_key", "the key occurs twice in its object, the last value was taken");
      } else if (note.kind == JsonNote::Kind::unpaired_surrogate && is_known(note.field)) {
        faults_.reject(note.field, "bad_character", "the text holds an unpaired surrogate escape");
      }
    }
  }

  void check_characters(const std::string& field, const std::string& text) {
    const bool zero = text.find('\0') != std::string::npos;
    if (zero) faults_.warn(field, "bad_character", "the text holds U+0000");
    if (text.find("\uFFFD") != std::string::npos && !unpaired_surrogates_.contains(field)) {
      faults_.warn(field, "bad_character", "the text holds U+FFFD: a character was lost before this file was written");
    }
  }

  void wrong_type(const std::string& field, const char* expected, const Json& got) {
    faults_.reject(field, "wrong_type", fmt::format("expected {}, got {}", expected, got.type_name()));
  }

  // The member if it is there and of the type; otherwise its fault is reported.
  const Json* required(const char* key, Json::value_t type) {
    const auto found = raw_.value.find(key);
    if (found == raw_.value.end()) {
      faults_.reject(key, "missing_field", fmt::format("the record has no {}", key));
      return nullptr;
    }
    if (found->type() != type) {
      wrong_type(key, type == Json::value_t::string ? "a string" : "an array of strings", *found);
      return nullptr;
    }
    return &*found;
  }

  void read_id() {
    const Json* id = required("id", Json::value_t::string);
    if (id == nullptr) return;
    record_.id = id->get<std::string>();
    check_characters("id", record_.id);
    if (record_.id.empty()) faults_.reject("id", "id_empty", "the id is empty");
    if (!has_usual_form(record_.id)) faults_.count("id_pattern");
  }

  // WH_(train|dev|test)_<n>
  static bool has_usual_form(std::string_view id) {
    for (const std::string_view prefix : {"WH_train_", "WH_dev_", "WH_test_"}) {
      if (!id.starts_with(prefix)) continue;
      id.remove_prefix(prefix.size());
      return !id.empty() && id.find_first_not_of("0123456789") == std::string_view::npos;
    }
    return false;
  }

  void query_text(const Json& query) {
    record_.query = query.get<std::string>();
    check_characters("query", record_.query);
  }

  void read_candidates() {
    const Json* candidates = required("candidates", Json::value_t::array);
    if (candidates == nullptr) return;
    has_candidates_ = true;
    record_.candidates.reserve(candidates->size());             // no reallocation, so that
    std::unordered_map<std::string_view, std::size_t> numbers;  // these views of the texts stay valid
    for (std::size_t i = 0; i < candidates->size(); ++i) {
      const Json& value = (*candidates)[i];
      const std::string field = element("candidates", i);
      if (!value.is_string()) {
        wrong_type(field, "a string", value);
        record_.candidates.emplace_back();  // so that the others keep their numbers
        continue;
      }
      const auto& text = value.get_ref<const std::string&>();
      check_characters(field, text);
      std::string candidate = normalised_answer(text);
      if (candidate.empty()) faults_.reject(field, "candidate_empty", "candidate is empty after trimming");
      const std::size_t number = record_.candidates.size();
      record_.candidates.push_back(std::move(candidate));
      if (record_.candidates.back().empty()) continue;
      const auto [equal, fresh] = numbers.try_emplace(record_.candidates.back(), number);
      if (fresh) continue;
      record_.equal_candidates = true;
      faults_.warn(field, "candidate_duplicate",
                   fmt::format("equals candidates[{}] after trimming and lower-casing", equal->second));
    }
    if (candidates->empty()) faults_.reject("candidates", "too_few_candidates", "there is no candidate");
    if (candidates->size() == 1) faults_.warn("candidates", "too_few_candidates", "there is only one candidate");
  }

  void read_answer() {
    const auto found = raw_.value.find("answer");
    if (found == raw_.value.end() || found->is_null()) {
      if (config_.labels_required) faults_.reject("answer", "label_missing", "the record has no answer");
      return;
    }
    if (!found->is_string()) {
      wrong_type("answer", "a string", *found);
      return;
    }
    record_.answer = found->get<std::string>();
    check_characters("answer", *record_.answer);
    if (has_candidates_) find_label();
  }

  void find_label() {
    const auto index_of = [&](const std::string& text) {
      const auto& all = record_.candidates;
      const auto equal = std::find(all.begin(), all.end(), text);
      return equal == all.end() ? -1 : equal - all.begin();
    };
    // The reference lower-cases the answer without stripping it (quirk Q1).
    const std::int64_t untrimmed = index_of(data::lower_case(*record_.answer));
    const std::int64_t trimmed = index_of(normalised_answer(*record_.answer));
    record_.label = config_.parity == Parity::reference ? untrimmed : trimmed;
    if (untrimmed < 0 && trimmed >= 0) {
      report_label("answer_untrimmed", "the answer is a candidate only after trimming",
                   config_.parity == Parity::reference);
    } else if (trimmed < 0) {
      report_label("answer_not_candidate", quoted_answer() + " is not among the candidates", true);
    }
  }

  std::string quoted_answer() const { return "the answer " + prepare::quoted(*record_.answer); }

  // An unusable label rejects the record where labels are required; for prediction it is only recorded.
  void report_label(const char* code, const std::string& message, bool unusable) {
    record_.unusable_label = unusable;
    if (unusable && config_.labels_required) {
      faults_.reject("answer", code, message);
    } else {
      faults_.warn("answer", code, message);
    }
  }

  void read_supports() {
    const Json* supports = required("supports", Json::value_t::array);
    if (supports == nullptr) return;
    record_.supports.reserve(supports->size());
    for (std::size_t i = 0; i < supports->size(); ++i) {
      const Json& value = (*supports)[i];
      const std::string field = element("supports", i);
      if (!value.is_string()) {
        wrong_type(field, "a string", value);
        continue;
      }
      const auto& text = value.get_ref<const std::string&>();
      record_.supports.push_back(text);
      check_characters(field, text);
      if (data::strip(text).empty()) {
        faults_.warn(field, "document_empty", "the document is empty or white space");
      }
    }
    if (supports->empty()) faults_.reject("supports", "supports_empty", "there is no document");
  }

  void count_unknown_keys() {
    for (const auto& [key, value] : raw_.value.items()) {
      if (!is_known(key)) faults_.count("unknown_key " + key);
    }
  }

  const data::JsonRecord& raw_;
  const PrepareConfig& config_;
  prepare::FaultList& faults_;
  Record record_;
  bool has_candidates_ = false;
  std::unordered_set<std::string_view> unpaired_surrogates_;  // fields
};

}  // namespace

Record read_record(const data::JsonRecord& raw, const PrepareConfig& config, prepare::FaultList& faults) {
  return RecordReader(raw, config, faults).read();
}

}  // namespace etc::wikihop
