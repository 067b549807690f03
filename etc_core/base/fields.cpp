#include "etc_core/base/fields.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/words.h"

namespace etc {

namespace {

bool is_int64(const Json& value) {
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return value.is_number_integer() && (!value.is_number_unsigned() || value.get<std::uint64_t>() <= kLargest);
}

bool is_natural(const Json& value) {
  return value.is_number_integer() && (value.is_number_unsigned() || value.get<std::int64_t>() >= 0);
}

bool is_texts(const Json& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& v) { return v.is_string(); });
}

bool has_words(const Field& field) {
  return !field.rule.words.empty();
}

// What a number must be: "an integer from 1 to 64", "a number above 0".
std::string number_text(const Field& field) {
  const FieldRule& rule = field.rule;
  std::string low, high;
  if (std::isfinite(rule.least)) low = fmt::format("{}", rule.least);
  if (std::isfinite(rule.most)) high = fmt::format("{}", rule.most);
  if (std::isfinite(rule.below)) high = fmt::format("below {}", rule.below);
  std::string text = field.kind == FieldKind::number ? "a number" : "an integer";
  if (std::isfinite(rule.above)) {
    text += fmt::format(" above {}", rule.above);
    if (!high.empty()) text += " and at most " + high;
  } else if (!low.empty()) {
    text += high.empty() ? " of at least " + low : " from " + low + " to " + high;
  } else if (!high.empty()) {
    text += (std::isfinite(rule.below) ? " " : " of at most ") + high;
  }
  return field.kind == FieldKind::optional_integer ? text + " or null" : text;
}

bool admits(const FieldRule& rule, double value) {
  return std::isfinite(value) && value >= rule.least && value > rule.above && value <= rule.most && value < rule.below;
}

bool is_word(const FieldRule& rule, const std::string& text) {
  return rule.words.empty() || std::find(rule.words.begin(), rule.words.end(), text) != rule.words.end();
}

// The first entry of texts that is not one of the rule's words; null: there is none.
const std::string* unknown_word(const FieldRule& rule, const Json& texts) {
  for (const Json& text : texts) {
    if (const auto& word = text.get_ref<const std::string&>(); !is_word(rule, word)) return &word;
  }
  return nullptr;
}

// Whether the rule admits a value of the field's kind.
bool is_meant(const Field& field, const Json& value) {
  switch (field.kind) {
    case FieldKind::integer:
    case FieldKind::natural:
    case FieldKind::number:
      return admits(field.rule, value.get<double>());
    case FieldKind::optional_integer:
      return value.is_null() || admits(field.rule, value.get<double>());
    case FieldKind::text:
    case FieldKind::word:
      return is_word(field.rule, value.get_ref<const std::string&>());
    case FieldKind::texts:
      return unknown_word(field.rule, value) == nullptr;
    default:
      return true;
  }
}

// The field's member in the struct at `object`.
template <typename Value>
Value& member(const Field& field, void* object) {
  return *reinterpret_cast<Value*>(static_cast<char*>(object) + field.offset);
}
template <typename Value>
const Value& member(const Field& field, const void* object) {
  return *reinterpret_cast<const Value*>(static_cast<const char*>(object) + field.offset);
}

// The enum is copied into an int, because reading it in place through an int pointer would violate aliasing rules.
std::string word_of(const Field& field, const void* object) {
  int number = 0;
  std::memcpy(&number, static_cast<const char*>(object) + field.offset, sizeof number);
  const auto found = std::find(field.numbers.begin(), field.numbers.end(), number);
  if (found == field.numbers.end()) fail("fields", "{}: {} has no word", field.name, number);
  return field.rule.words[static_cast<std::size_t>(found - field.numbers.begin())];
}

void put_word(const Field& field, const std::string& word, void* object) {
  const auto& words = field.rule.words;
  const auto found = std::find(words.begin(), words.end(), word);
  const int number = field.numbers.at(static_cast<std::size_t>(found - words.begin()));
  std::memcpy(static_cast<char*>(object) + field.offset, &number, sizeof number);
}

Json value_of(const Field& field, const void* object) {
  switch (field.kind) {
    case FieldKind::boolean:
      return member<bool>(field, object);
    case FieldKind::integer:
      return member<std::int64_t>(field, object);
    case FieldKind::natural:
      return member<std::uint64_t>(field, object);
    case FieldKind::optional_integer: {
      const auto& value = member<std::optional<std::int64_t>>(field, object);
      return value ? Json(*value) : Json(nullptr);
    }
    case FieldKind::number:
      return member<double>(field, object);
    case FieldKind::text:
      return member<std::string>(field, object);
    case FieldKind::texts:
      return member<std::vector<std::string>>(field, object);
    case FieldKind::word:
      return word_of(field, object);
    case FieldKind::json:
      return member<Json>(field, object);
  }
  return nullptr;
}

void put(const Field& field, const Json& value, void* object) {
  switch (field.kind) {
    case FieldKind::boolean:
      member<bool>(field, object) = value.get<bool>();
      break;
    case FieldKind::integer:
      member<std::int64_t>(field, object) = value.get<std::int64_t>();
      break;
    case FieldKind::natural:
      member<std::uint64_t>(field, object) = value.get<std::uint64_t>();
      break;
    case FieldKind::optional_integer:
      member<std::optional<std::int64_t>>(field, object) =
          value.is_null() ? std::nullopt : std::optional(value.get<std::int64_t>());
      break;
    case FieldKind::number:
      member<double>(field, object) = value.get<double>();
      break;
    case FieldKind::text:
      member<std::string>(field, object) = value.get<std::string>();
      break;
    case FieldKind::texts:
      member<std::vector<std::string>>(field, object) = value.get<std::vector<std::string>>();
      break;
    case FieldKind::word:
      put_word(field, value.get_ref<const std::string&>(), object);
      break;
    case FieldKind::json:
      member<Json>(field, object) = value;
      break;
  }
}

}  // namespace

std::string Field::option_name() const {
  if (!option.empty()) return option;
  std::string spelled = "--" + name;
  std::replace(spelled.begin(), spelled.end(), '_', '-');
  return spelled;
}

Json Field::default_value() const {
  return value_of(*this, defaults);
}

std::string kind_text(const Field& field) {
  switch (field.kind) {
    case FieldKind::boolean:
      return "true or false";
    case FieldKind::integer:
      return "an integer";
    case FieldKind::natural:
      return "an integer of at least 0";
    case FieldKind::optional_integer:
      return "an integer or null";
    case FieldKind::number:
      return "a number";
    case FieldKind::text:
    case FieldKind::word:
      return has_words(field) ? alternatives(field.rule.words) : "a string";
    case FieldKind::texts:
      return "a list of strings";
    case FieldKind::json:
      return "a JSON value";
  }
  return "";
}

bool has_kind(const Field& field, const Json& value) {
  switch (field.kind) {
    case FieldKind::boolean:
      return value.is_boolean();
    case FieldKind::integer:
      return is_int64(value);
    case FieldKind::natural:
      return is_natural(value);
    case FieldKind::optional_integer:
      return value.is_null() || is_int64(value);
    case FieldKind::number:
      return value.is_number();
    case FieldKind::text:
    case FieldKind::word:
      return value.is_string();
    case FieldKind::texts:
      return is_texts(value);
    case FieldKind::json:
      return true;
  }
  return false;
}

void require_kind(const Field& field, const Json& value, const std::string& where, const std::string& shown) {
  if (!has_kind(field, value)) {
    fail_usage(where, "{}: expected {}, got {}", shown, kind_text(field), json_line(value));
  }
}

void require_meant(const Field& field, const Json& value, const std::string& where, const std::string& shown) {
  require_kind(field, value, where, shown);
  if (is_meant(field, value)) return;
  if (!has_words(field)) {
    const std::string got = value.is_number_float() ? fmt::format("{}", value.get<double>()) : json_line(value);
    fail_usage(where, "{}: expected {}, got {}", shown, number_text(field), got);
  }
  if (field.kind == FieldKind::texts) {
    const std::string& word = *unknown_word(field.rule, value);
    fail_usage(where, "{}: expected some of {}, got {}{}", shown, fmt::join(field.rule.words, ", "), word,
               suggestion(word, field.rule.words));
  }
  const auto& word = value.get_ref<const std::string&>();
  fail_usage(where, "{}: expected {}, got {}{}", shown, kind_text(field), word, suggestion(word, field.rule.words));
}

std::vector<std::string> Fields::names() const {
  std::vector<std::string> names;
  for (const Field& field : list_) names.push_back(field.name);
  return names;
}

const Field* Fields::find(const std::string& name) const {
  const auto found = std::find_if(list_.begin(), list_.end(), [&](const Field& field) { return field.name == name; });
  return found == list_.end() ? nullptr : &*found;
}

Json Fields::defaults() const {
  Json json = Json::object();
  for (const Field& field : list_) json[field.name] = field.default_value();
  return json;
}

void Fields::add(Field field, const void* defaults) {
  field.defaults = defaults;
  list_.push_back(std::move(field));
}

Json Fields::write(const void* object) const {
  Json json = Json::object();
  for (const Field& field : list_) json[field.name] = value_of(field, object);
  return json;
}

void Fields::assign(const Json& json, void* object, const std::string& where, const std::string& prefix) const {
  for (const Field& field : list_) {
    const auto value = json.find(field.name);
    if (value == json.end()) continue;
    // A word outside the list has no number to store, so it is checked here already.
    (field.kind == FieldKind::word ? require_meant : require_kind)(field, *value, where, prefix + field.name);
    put(field, *value, object);
  }
}

void Fields::check_members(const void* object, const std::string& where, const std::string& prefix) const {
  for (const Field& field : list_) require_meant(field, value_of(field, object), where, prefix + field.name);
}

namespace detail {

Field make_field(const char* name, FieldKind kind, const char* help, FieldRule rule, int mark) {
  Field field;
  field.name = name;
  field.kind = kind;
  field.help = help;
  field.rule = std::move(rule);
  field.mark = mark;
  return field;
}

}  // namespace detail

}  // namespace etc
