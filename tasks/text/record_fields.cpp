#include "tasks/text/record_fields.h"

#include <algorithm>

#include "etc_core/base/error.h"

namespace etc::text {

namespace {

const char* type_words(Json::value_t type) {
  switch (type) {
    case Json::value_t::string:
      return "a string";
    case Json::value_t::array:
      return "an array";
    default:
      return "another type";
  }
}

}  // namespace

std::string element(const std::string& field, std::size_t index) {
  return fmt::format("{}[{}]", field, index);
}

std::string FieldPath::words() const {
  if (parent_ == nullptr) return std::string(name_);
  const std::string before = parent_->words();
  return name_.empty() ? text::element(before, index_) : fmt::format("{}.{}", before, name_);
}

RecordFields::RecordFields(const data::JsonRecord& raw, std::initializer_list<const char*> known_keys,
                           prepare::FaultList& faults)
    : raw_(raw), known_keys_(known_keys.begin(), known_keys.end()), faults_(faults) {
  report_notes();
  count_unknown_keys();
}

bool RecordFields::is_known(const std::string& field) const {
  const std::string key = field.substr(0, field.find_first_of(".["));
  return std::find(known_keys_.begin(), known_keys_.end(), key) != known_keys_.end();
}

void RecordFields::report_notes() {
  using Kind = data::JsonNote::Kind;
  for (const data::JsonNote& note : raw_.notes) {
    if (note.kind == Kind::unpaired_surrogate) unpaired_surrogates_.insert(note.field);
    if (note.kind == Kind::duplicate_key) {
      faults_.warn(note.field, "duplicate_key", "the key occurs twice in its object, the last value was taken");
    } else if (note.kind == Kind::unpaired_surrogate && is_known(note.field)) {
      faults_.reject(note.field, "bad_character", "the text holds an unpaired surrogate escape");
    }
  }
}

void RecordFields::count_unknown_keys() {
  for (const auto& [key, value] : raw_.value.items()) {
    if (!is_known(key)) faults_.count("unknown_key " + key);
  }
}

const Json* RecordFields::find(const char* key) const {
  const auto found = raw_.value.find(key);
  return found == raw_.value.end() || found->is_null() ? nullptr : &*found;
}

const Json* RecordFields::required(const char* key, Json::value_t type) {
  const auto found = raw_.value.find(key);
  if (found == raw_.value.end()) {
    faults_.reject(key, "missing_field", fmt::format("the record has no {}", key));
    return nullptr;
  }
  if (found->type() == type) return &*found;
  wrong_type(key, type_words(type), *found);
  return nullptr;
}

std::string RecordFields::text(const FieldPath& field, const Json& value) {
  if (!value.is_string()) {
    wrong_type(field, "a string", value);
    return "";
  }
  const auto& text = value.get_ref<const std::string&>();
  check_text(field, text);
  return text;
}

void RecordFields::check_text(const FieldPath& field, std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {
    faults_.warn(field.words(), "bad_character", "the text holds U+0000");
  }
  if (text.find("\uFFFD") != std::string_view::npos && !unpaired_surrogates_.contains(field.words())) {
    faults_.warn(field.words(), "bad_character",
                 "the text holds U+FFFD: a character was lost before this file was written");
  }
}

void RecordFields::wrong_type(const FieldPath& field, const char* expected, const Json& got) {
  faults_.reject(field.words(), "wrong_type", fmt::format("expected {}, got {}", expected, got.type_name()));
}

}  // namespace etc::text
