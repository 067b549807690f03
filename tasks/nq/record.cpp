#include "tasks/nq/record.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "tasks/text/record_fields.h"

namespace etc::nq {

namespace {

using text::element;

constexpr auto kLargestInteger = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
// Document tokens are numbered in 32 bits.
constexpr std::int64_t kMostTokens = std::numeric_limits<std::int32_t>::max();

bool is_ascii_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Recovers the flag html_token, which the simplified form lacks (task-nq 1.3).
bool looks_like_html(std::string_view text) {
  if (text.size() < 3 || text.front() != '<' || text.back() != '>') return false;
  return is_ascii_letter(text[text[1] == '/' ? 2 : 1]);
}

bool inside(const Span& inner, const Span& outer) {
  return outer.start_token >= 0 && inner.start_token >= outer.start_token && inner.end_token <= outer.end_token;
}

class RecordReader {
 public:
  RecordReader(const data::JsonRecord& raw, const PrepareConfig& config, prepare::FaultList& faults)
      : raw_(raw), fields_(raw, kRecordMembers, faults), config_(config), faults_(faults) {}

  Record read() {
    read_id();
    read_question();
    if (simplified()) {
      read_text();
    } else {
      read_tokens();
    }
    // Candidates and answers refer to tokens by number: they cannot be checked unless all tokens were read.
    if (!tokens_read_) return std::move(record_);
    read_candidates();
    read_annotations();
    return std::move(record_);
  }

 private:
  bool simplified() const {
    if (config_.input_form != InputForm::either) return config_.input_form == InputForm::simplified;
    return raw_.value.contains("document_text") && !raw_.value.contains("document_tokens");
  }

  // A member of an object within the record, with missing_field where it is absent.
  const Json* member(const Json& object, const std::string& field, const char* key) {
    const auto found = object.find(key);
    if (found != object.end()) return &*found;
    faults_.reject(field + "." + key, "missing_field", fmt::format("there is no {}", key));
    return nullptr;
  }

  std::optional<std::int64_t> integer(const Json& value, const std::string& field) {
    if (value.is_number_integer() && !(value.is_number_unsigned() && value.get<std::uint64_t>() > kLargestInteger)) {
      return value.get<std::int64_t>();
    }
    fields_.wrong_type(field, "an integer of at most 64 bits", value);
    return std::nullopt;
  }

  std::optional<std::int64_t> integer_member(const Json& object, const std::string& field, const char* key) {
    const Json* value = member(object, field, key);
    return value == nullptr ? std::nullopt : integer(*value, field + "." + key);
  }

  bool is_object(const Json& value, const std::string& field) {
    if (value.is_object()) return true;
    fields_.wrong_type(field, "an object", value);
    return false;
  }

  void read_id() {
    const auto found = raw_.value.find("example_id");
    if (found == raw_.value.end()) return faults_.reject("example_id", "missing_field", "the record has no example_id");
    const auto accept = [&](std::int64_t id) {
      record_.example_id = id;
      record_.id = std::to_string(id);
    };
    const auto out_of_range = [&] {
      faults_.reject("example_id", "id_range",
                     fmt::format("expected an integer of at most 64 bits, got {}", json_line(*found)));
    };
    if (found->is_number_float() || (found->is_number_unsigned() && found->get<std::uint64_t>() > kLargestInteger)) {
      return out_of_range();
    }
    if (found->is_number_integer()) return accept(found->get<std::int64_t>());
    // In the published simplified test records the id is a string.
    if (!found->is_string() || !simplified()) return fields_.wrong_type("example_id", "an integer", *found);
    const auto& digits = found->get_ref<const std::string&>();
    std::int64_t id = 0;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
    if (error == std::errc::result_out_of_range) return out_of_range();
    if (error != std::errc() || stop != digits.data() + digits.size()) {
      return fields_.wrong_type("example_id", "an integer", *found);
    }
    accept(id);
  }

  void read_question() {
    const Json* question = fields_.required("question_text", Json::value_t::string);
    if (question == nullptr) return;
    fields_.text("question_text", *question);
    record_.question = question->get_ref<const std::string&>();
  }

  void other_form(const char* key, const char* form) {
    faults_.reject(
        key, "missing_field",
        fmt::format("the record is in the {0} form, without {1} (prepare with --input-form {0})", form, key));
  }

  void read_tokens() {
    if (!raw_.value.contains("document_tokens") && raw_.value.contains("document_text")) {
      return other_form("document_tokens", "simplified");
    }
    const Json* tokens = fields_.required("document_tokens", Json::value_t::array);
    if (tokens == nullptr) return;
    if (const auto list = raw_.columns.find("document_tokens"); list != raw_.columns.end()) {
      return take_tokens(list->second);
    }
    record_.tokens.reserve(tokens->size());
    for (std::size_t i = 0; i < tokens->size(); ++i) {
      const Json& token = (*tokens)[i];
      if (const auto* object = token.get_ptr<const Json::object_t*>()) {
        const auto text = object->find("token"), html = object->find("html_token");
        if (text != object->end() && html != object->end() && text->second.is_string() && html->second.is_boolean()) {
          record_.tokens.push_back({text->second.get_ref<const std::string&>(), html->second.get<bool>()});
          continue;
        }
      }
      return report_token(token, element("document_tokens", i));
    }
    check_token_count();
  }

  void take_tokens(const data::FlatList& list) {
    record_.tokens.reserve(list.rows);
    for (std::size_t i = 0; i < list.rows; ++i) record_.tokens.push_back({list.texts[0][i], list.flags[0][i]});
    check_token_count();
  }

  void report_token(const Json& token, const std::string& field) {
    if (!is_object(token, field)) return;
    if (const Json* text = member(token, field, "token"); text != nullptr && !text->is_string()) {
      fields_.wrong_type(field + ".token", "a string", *text);
    }
    if (const Json* html = member(token, field, "html_token"); html != nullptr && !html->is_boolean()) {
      fields_.wrong_type(field + ".html_token", "true or false", *html);
    }
  }

  // Tokens are separated by single U+0020; any other white space is part of a token.
  void read_text() {
    if (!raw_.value.contains("document_text") && raw_.value.contains("document_tokens")) {
      return other_form("document_text", "original");
    }
    const Json* value = fields_.required("document_text", Json::value_t::string);
    if (value == nullptr) return;
    const std::string_view text = value->get_ref<const std::string&>();
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(' ', begin), text.size());
      const std::string_view token = text.substr(begin, end - begin);
      record_.tokens.push_back({token, looks_like_html(token)});
      begin = end + 1;
    }
    check_token_count();
  }

  void check_token_count() {
    tokens_read_ = true;
    if (std::ssize(record_.tokens) <= kMostTokens) return;
    faults_.reject(simplified() ? "document_text" : "document_tokens", "document_too_long",
                   fmt::format("more than {} tokens", kMostTokens));
  }

  void read_candidates() {
    const Json* candidates = fields_.required("long_answer_candidates", Json::value_t::array);
    if (candidates == nullptr) return;
    for (std::size_t i = 0; i < candidates->size(); ++i) {
      if (!read_candidate((*candidates)[i], element("long_answer_candidates", i))) return;
    }
    const auto& all = record_.candidates;
    if (std::none_of(all.begin(), all.end(), [](const Candidate& c) { return c.top_level; })) {
      faults_.warn("long_answer_candidates", "no_top_level", "no candidate is top-level, so no text is seen");
    }
    check_overlap();
  }

  bool read_candidate(const Json& entry, const std::string& field) {
    if (!is_object(entry, field)) return false;
    const auto start = integer_member(entry, field, "start_token"), end = integer_member(entry, field, "end_token");
    const Json* top_level = member(entry, field, "top_level");
    if (top_level != nullptr && !top_level->is_boolean()) {
      fields_.wrong_type(field + ".top_level", "true or false", *top_level);
      return false;
    }
    if (!start || !end || top_level == nullptr) return false;
    const std::int64_t tokens = std::ssize(record_.tokens);
    if (simplified() && *end > tokens) {
      faults_.reject("document_text", "token_count_mismatch",
                     fmt::format("{} tokens, but {} ends at {}", tokens, field, *end));
    } else if (*start < 0 || *end > tokens || *start >= *end) {
      faults_.reject(field, "candidate_range",
                     fmt::format("expected 0 <= start < end <= {}, got {}, {}", tokens, *start, *end));
    }
    record_.candidates.push_back({*start, *end, top_level->get<bool>()});
    return true;
  }

  void check_overlap() {
    std::vector<std::pair<std::int64_t, std::int64_t>> spans;
    for (const Candidate& c : record_.candidates) {
      if (c.top_level) spans.emplace_back(c.start, c.end);
    }
    std::sort(spans.begin(), spans.end());
    for (std::size_t i = 1; i < spans.size(); ++i) {
      if (spans[i].first >= spans[i - 1].second) continue;
      return faults_.warn("long_answer_candidates", "candidate_overlap",
                          fmt::format("top-level candidates [{}, {}) and [{}, {}) overlap; the text is read twice",
                                      spans[i - 1].first, spans[i - 1].second, spans[i].first, spans[i].second));
    }
  }

  void read_annotations() {
    // The published test records have none.
    const bool optional = simplified() || !config_.labels_required;
    if (!raw_.value.contains("annotations") && optional) return check_annotation_count();
    const Json* annotations = fields_.required("annotations", Json::value_t::array);
    if (annotations == nullptr) return;
    for (std::size_t i = 0; i < annotations->size(); ++i) {
      if (!read_annotation((*annotations)[i], element("annotations", i))) return;
    }
    check_annotation_count();
  }

  void check_annotation_count() {
    constexpr std::size_t kOfTrain = 1, kOfDev = 5;
    const std::size_t count = record_.annotations.size(), expected = config_.is_train ? kOfTrain : kOfDev;
    if (count == expected || (count == 0 && !config_.labels_required)) return;
    faults_.warn("annotations", "annotation_count",
                 fmt::format("expected {} annotations, got {}{}", expected, count,
                             count == 0 ? "; the document cannot be scored" : ""));
  }

  // False when the record is rejected for its form.
  bool read_annotation(const Json& entry, const std::string& field) {
    if (!is_object(entry, field)) return false;
    RecordAnnotation annotation;
    const Json* long_answer = member(entry, field, "long_answer");
    const Json* short_answers = member(entry, field, "short_answers");
    const Json* yes_no = member(entry, field, "yes_no_answer");
    if (long_answer == nullptr || short_answers == nullptr || yes_no == nullptr) return false;
    const std::size_t before = inconsistent_;
    const auto span = read_span(*long_answer, field + ".long_answer");
    if (!span) return false;
    annotation.long_left_out = inconsistent_ > before;
    annotation.answers.long_answer = *span;
    if (!short_answers->is_array()) {
      fields_.wrong_type(field + ".short_answers", "an array", *short_answers);
      return false;
    }
    for (std::size_t i = 0; i < short_answers->size(); ++i) {
      const std::string where = element(field + ".short_answers", i);
      std::size_t faults_before = inconsistent_;
      const auto short_span = read_span((*short_answers)[i], where);
      if (!short_span) return false;
      if (inconsistent_ > faults_before) {
        annotation.short_left_out = true;
        continue;
      }
      if (!inside(*short_span, *span)) {
        faults_.warn(where, "short_outside_long",
                     fmt::format("[{}, {}) is not inside the long answer [{}, {})", short_span->start_token,
                                 short_span->end_token, span->start_token, span->end_token));
      }
      annotation.answers.short_answers.push_back(*short_span);
    }
    if (!read_yes_no(*yes_no, field + ".yes_no_answer", annotation)) return false;
    check_together(annotation.answers, field);
    record_.annotations.push_back(std::move(annotation));
    return true;
  }

  // An inconsistent span counts as missing, or rejects the record if the record is to be scored.
  std::optional<Span> read_span(const Json& value, const std::string& field) {
    if (!is_object(value, field)) return std::nullopt;
    const auto start = integer_member(value, field, "start_token"), end = integer_member(value, field, "end_token");
    if (!start || !end) return std::nullopt;
    Span span{*start, *end, -1, -1};
    for (auto [key, bound] : {std::pair("start_byte", &span.start_byte), std::pair("end_byte", &span.end_byte)}) {
      const auto found = value.find(key);
      if (found == value.end()) continue;  // the simplified form has none
      const auto byte = integer(*found, field + "." + key);
      if (!byte) return std::nullopt;
      *bound = *byte;
    }
    const auto wrong = [](std::int64_t first, std::int64_t last) {
      return (first < 0) != (last < 0) || (first >= 0 && first >= last);
    };
    const std::int64_t tokens = std::ssize(record_.tokens);
    if (!wrong(span.start_token, span.end_token) && !wrong(span.start_byte, span.end_byte) &&
        span.end_token <= tokens) {
      return span;
    }
    ++inconsistent_;
    const std::string message =
        fmt::format("expected start < end within {} tokens, or -1 for both; got tokens {}, {} and bytes {}, {}", tokens,
                    span.start_token, span.end_token, span.start_byte, span.end_byte);
    if (config_.is_train || !config_.labels_required) {
      faults_.warn(field, "span_inconsistent", message + "; taken as no answer");
    } else {
      faults_.reject(field, "span_inconsistent", message);
    }
    return Span();
  }

  bool read_yes_no(const Json& value, const std::string& field, RecordAnnotation& annotation) {
    if (!value.is_string()) {
      fields_.wrong_type(field, "a string", value);
      return false;
    }
    const auto& text = value.get_ref<const std::string&>();
    const std::array<std::pair<const char*, YesNo>, 3> kValues = {
        std::pair("NONE", YesNo::none), std::pair("YES", YesNo::yes), std::pair("NO", YesNo::no)};
    for (const auto& [name, yes_no] : kValues) {
      if (data::lower_case(text) != data::lower_case(name)) continue;
      annotation.answers.yes_no = yes_no;
      annotation.exact_yes_no = text == name;
      if (!annotation.exact_yes_no) {
        faults_.warn(field, "yes_no_value", fmt::format("{} is taken as {}", prepare::quoted(text), name));
      }
      return true;
    }
    faults_.reject(field, "yes_no_value", "expected YES, NO or NONE, got " + prepare::quoted(text));
    return false;
  }

  void check_together(const Annotation& answers, const std::string& field) {
    const auto& shorts = answers.short_answers;
    if (shorts.empty()) return;
    if (answers.yes_no != YesNo::none) {
      faults_.warn(field, "yes_no_with_short", "yes or no is given together with short answers");
    }
    if (shorts.front().start_token >= shorts.back().end_token) {
      faults_.warn(field + ".short_answers", "short_unsorted",
                   fmt::format("the first starts at {}, the last ends at {}", shorts.front().start_token,
                               shorts.back().end_token));
    }
  }

  const data::JsonRecord& raw_;
  text::RecordFields fields_;
  const PrepareConfig& config_;
  prepare::FaultList& faults_;
  bool tokens_read_ = false;
  std::size_t inconsistent_ = 0;  // inconsistent spans so far
  Record record_;
};

}  // namespace

const data::FlatMembers kTokenMembers{{"token"}, {}, {}, {"html_token"}};

Record read_record(const data::JsonRecord& raw, const PrepareConfig& config, prepare::FaultList& faults) {
  return RecordReader(raw, config, faults).read();
}

}  // namespace etc::nq
