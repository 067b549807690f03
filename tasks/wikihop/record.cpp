#include "tasks/wikihop/record.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "data/text/unicode.h"
#include "tasks/text/record_fields.h"
#include "tasks/wikihop/decode.h"

namespace etc::wikihop {

namespace {

using text::FieldPath;

// Reads the members of one record and reports their faults.
class RecordReader {
 public:
  RecordReader(const data::JsonRecord& raw, const PrepareConfig& config, prepare::FaultList& faults)
      : fields_(raw, kRecordMembers, faults), config_(config), faults_(faults) {}

  Record read() {
    read_id();
    if (const Json* query = fields_.required("query", Json::value_t::string))
      record_.query = fields_.text("query", *query);
    read_candidates();
    read_answer();
    read_supports();
    return std::move(record_);
  }

 private:
  void read_id() {
    const Json* id = fields_.required("id", Json::value_t::string);
    if (id == nullptr) return;
    record_.id = fields_.text("id", *id);
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

  void read_candidates() {
    const Json* candidates = fields_.required("candidates", Json::value_t::array);
    if (candidates == nullptr) return;
    const FieldPath list = "candidates";
    has_candidates_ = true;
    record_.candidates.reserve(candidates->size());             // no reallocation, so that
    std::unordered_map<std::string_view, std::size_t> numbers;  // these views of the texts stay valid
    for (std::size_t i = 0; i < candidates->size(); ++i) {
      const Json& value = (*candidates)[i];
      const FieldPath field = list.element(i);
      if (!value.is_string()) {
        fields_.wrong_type(field, "a string", value);
        record_.candidates.emplace_back();  // so that the others keep their numbers
        continue;
      }
      std::string candidate = normalised_answer(fields_.text(field, value));
      if (candidate.empty()) faults_.reject(field.words(), "candidate_empty", "candidate is empty after trimming");
      const std::size_t number = record_.candidates.size();
      record_.candidates.push_back(std::move(candidate));
      if (record_.candidates.back().empty()) continue;
      const auto [equal, fresh] = numbers.try_emplace(record_.candidates.back(), number);
      if (fresh) continue;
      record_.equal_candidates = true;
      faults_.warn(field.words(), "candidate_duplicate",
                   fmt::format("equals candidates[{}] after trimming and lower-casing", equal->second));
    }
    if (candidates->empty()) faults_.reject("candidates", "too_few_candidates", "there is no candidate");
    if (candidates->size() == 1) faults_.warn("candidates", "too_few_candidates", "there is only one candidate");
  }

  void read_answer() {
    const Json* answer = fields_.find("answer");
    if (answer == nullptr) {
      if (config_.labels_required) faults_.reject("answer", "label_missing", "the record has no answer");
      return;
    }
    if (!answer->is_string()) return fields_.wrong_type("answer", "a string", *answer);
    record_.answer = fields_.text("answer", *answer);
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
    const Json* supports = fields_.required("supports", Json::value_t::array);
    if (supports == nullptr) return;
    record_.supports.reserve(supports->size());
    const FieldPath list = "supports";
    for (std::size_t i = 0; i < supports->size(); ++i) {
      const Json& value = (*supports)[i];
      const FieldPath field = list.element(i);
      if (!value.is_string()) {
        fields_.wrong_type(field, "a string", value);
        continue;
      }
      const auto& document = value.get_ref<const std::string&>();
      record_.supports.push_back(document);
      fields_.check_text(field, document);
      if (data::strip(document).empty()) {
        faults_.warn(field.words(), "document_empty", "the document is empty or white space");
      }
    }
    if (supports->empty()) faults_.reject("supports", "supports_empty", "there is no document");
  }

  text::RecordFields fields_;
  const PrepareConfig& config_;
  prepare::FaultList& faults_;
  Record record_;
  bool has_candidates_ = false;
};

}  // namespace

Record read_record(const data::JsonRecord& raw, const PrepareConfig& config, prepare::FaultList& faults) {
  return RecordReader(raw, config, faults).read();
}

}  // namespace etc::wikihop
