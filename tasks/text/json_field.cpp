#include "tasks/text/json_field.h"

#include <cmath>
#include <limits>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/words.h"

namespace etc::text {

std::string one_line(const Json& value) {
  return json_line(value);
}

void JsonField::fail(const std::string& what) const {
  etc::fail(where_, "{}{}{}", path_, path_.empty() ? "" : ": ", what);
}

void JsonField::fail_type(const std::string& expected) const {
  constexpr std::size_t kLongest = 80;  // bytes of the value
  fail(fmt::format("expected {}, got {}", expected, shortened(one_line(*value_), kLongest)));
}

void JsonField::require_object() const {
  if (!value_->is_object()) fail_type("an object");
}

JsonField JsonField::child(const Json& value, const std::string& key) const {
  return {&value, where_, path_.empty() ? key : path_ + "." + key};
}

JsonField JsonField::member(const std::string& key) const {
  require_object();
  const auto found = value_->find(key);
  if (found == value_->end()) fail(fmt::format("expected a member \"{}\", found none", key));
  return child(*found, key);
}

std::optional<JsonField> JsonField::optional_member(const std::string& key) const {
  require_object();
  const auto found = value_->find(key);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return child(*found, key);
}

std::size_t JsonField::size() const {
  if (!value_->is_array()) fail_type("an array");
  return value_->size();
}

JsonField JsonField::element(std::size_t index) const {
  return {&(*value_)[index], where_, fmt::format("{}[{}]", path_, index)};
}

const std::string& JsonField::string() const {
  if (!value_->is_string()) fail_type("a string");
  return value_->get_ref<const std::string&>();
}

std::int64_t JsonField::integer() const {
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const bool fits = value_->is_number_integer() && (!value_->is_number_unsigned() || *value_ <= kLargest);
  if (!fits) fail_type("an integer of at most 64 bits");
  return value_->get<std::int64_t>();
}

double JsonField::number() const {
  if (!value_->is_number() || !std::isfinite(value_->get<double>())) fail_type("a finite number");
  return value_->get<double>();
}

bool JsonField::boolean() const {
  if (!value_->is_boolean()) fail_type("true or false");
  return value_->get<bool>();
}

}  // namespace etc::text
