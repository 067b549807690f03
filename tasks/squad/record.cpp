#include "tasks/squad/record.h"

#include <algorithm>

#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "etc_core/base/utf8.h"
#include "tasks/text/record_fields.h"

namespace etc::squad {

namespace {

// Larger than any context; beyond it, adding an answer's length could overflow.
constexpr std::int64_t kFarthestStart = std::int64_t{1} << 62;

std::int64_t clamped_start(const Json& start) {
  if (start.is_number_unsigned()) {
    return static_cast<std::int64_t>(std::min(start.get<std::uint64_t>(), static_cast<std::uint64_t>(kFarthestStart)));
  }
  return std::clamp(start.get<std::int64_t>(), -kFarthestStart, kFarthestStart);
}

class RecordReader {
 public:
  RecordReader(const data::JsonRecord& raw, const PrepareConfig& config, prepare::FaultList& faults)
      : fields_(raw, {"context", "question"}, faults), config_(config), faults_(faults) {}

  Record read() {
    if (const Json* context = fields_.required("context", Json::value_t::string)) {
      record_.context = fields_.text("context", *context);
    }
    const Json* question = fields_.find("question");
    if (question == nullptr) {
      faults_.reject("question", "missing_field",
                     "the record has no question (expected {\"context\", \"question\": {\"id\", \"question\"}})");
    } else if (!question->is_object()) {
      fields_.wrong_type("question", "an object with id and question", *question);
    } else {
      read_question(*question);
    }
    return std::move(record_);
  }

 private:
  // A member of an object, null where it is absent or null itself.
  static const Json* member(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }

  std::string required_text(const Json& object, const text::FieldPath& field, const char* key) {
    const Json* value = member(object, key);
    if (value != nullptr) return fields_.text(field.member(key), *value);
    faults_.reject(field.member(key).words(), "missing_field", fmt::format("the question has no {}", key));
    return "";
  }

  void read_question(const Json& question) {
    const text::FieldPath field("question");
    record_.id = required_text(question, field, "id");
    if (record_.id.empty() && !faults_.rejected()) faults_.reject("question.id", "id_empty", "the id is empty");
    record_.question = required_text(question, field, "question");
    if (const Json* impossible = member(question, "is_impossible")) {
      if (!impossible->is_boolean()) fields_.wrong_type(field.member("is_impossible"), "true or false", *impossible);
      record_.impossible = impossible->is_boolean() && impossible->get<bool>();
    }
    const Json* answers = member(question, "answers");
    if (answers == nullptr) return;
    const text::FieldPath list = field.member("answers");
    if (!answers->is_array()) return fields_.wrong_type(list, "an array", *answers);
    for (std::size_t i = 0; i < answers->size(); ++i) read_answer((*answers)[i], list.element(i));
  }

  void read_answer(const Json& value, const text::FieldPath& field) {
    if (!value.is_object()) return fields_.wrong_type(field, "an object with text and answer_start", value);
    Answer answer;
    answer.text = required_text(value, field, "text");
    if (config_.trains()) {
      const Json* start = member(value, "answer_start");
      if (start == nullptr) {
        faults_.reject(field.member("answer_start").words(), "missing_field", "the answer has no answer_start");
      } else if (!start->is_number_integer()) {
        fields_.wrong_type(field.member("answer_start"), "an integer", *start);
      } else {
        answer.start = clamped_start(*start);
      }
    }
    record_.answers.push_back(std::move(answer));
  }

  text::RecordFields fields_;
  const PrepareConfig& config_;
  prepare::FaultList& faults_;
  Record record_;
};

}  // namespace

Record read_record(const data::JsonRecord& raw, const PrepareConfig& config, prepare::FaultList& faults) {
  return RecordReader(raw, config, faults).read();
}

bool find_answer(const Record& record, const PrepareConfig& config, prepare::FaultList& faults, AnswerBytes& bytes) {
  const auto refuse = [&](const char* field, const char* code, const std::string& message) {
    faults.reject(field, code, message);
    return false;
  };
  if (record.answers.empty() || (record.answers.size() > 1 && !config.first_answer)) {
    return refuse("question.answers", "answer_count",
                  fmt::format("expected one answer to train on, got {} (--is-training false for evaluation{})",
                              record.answers.size(),
                              record.answers.empty() ? "; --version-2 true: questions without an answer"
                                                     : "; --first-answer true takes the first"));
  }
  const Answer& answer = record.answers.front();
  if (answer.text.empty()) return refuse("question.answers[0].text", "answer_empty", "the answer is empty");
  const auto length = static_cast<std::int64_t>(data::to_code_points(answer.text).size());
  const std::int64_t last = answer.start + length - 1;  // code points
  std::int64_t at = -1;
  std::size_t found = 0;
  for (std::size_t byte = 0; byte < record.context.size(); ++byte) {
    if (continues_character(record.context[byte])) continue;
    ++at;
    if (at == answer.start) bytes.first = byte, ++found;
    if (at == last) bytes.last = byte, ++found;
  }
  if (found == 2) return true;
  return refuse(
      "question.answers[0].answer_start", "answer_offset",
      fmt::format("the answer has characters {} … {}, the context has characters 0 … {}", answer.start, last, at));
}

}  // namespace etc::squad
