#include "tasks/prepare/preparation.h"

#include "etc_core/base/error.h"

namespace etc::prepare {

namespace {

data::Fault row(const std::string& field, const std::string& code, const char* severity, const std::string& message) {
  data::Fault fault;
  fault.field = field;
  fault.code = code;
  fault.severity = severity;
  fault.message = message;
  return fault;
}

}  // namespace

void FaultList::reject(const std::string& field, const std::string& code, const std::string& message) {
  rows_.push_back(row(field, code, "reject", message));
  rejected_ = true;
}

void FaultList::drop(const std::string& field, const std::string& code, const std::string& message) {
  rows_.push_back(row(field, code, "drop", message));
  dropped_ = true;
}

void FaultList::warn(const std::string& field, const std::string& code, const std::string& message) {
  rows_.push_back(row(field, code, "warn", message));
  warned_ = true;
}

void FaultList::warn_quietly(const std::string& field, const std::string& code, const std::string& message) {
  quiet_rows_.push_back(row(field, code, "warn", message));
  warned_ = true;
}

void FaultList::count(const std::string& what) {
  counted_.push_back(what);
}

std::string quoted(std::string_view text) {
  constexpr std::size_t kLongest = 60;  // bytes
  if (text.size() <= kLongest) return fmt::format("\"{}\"", text);
  std::size_t end = kLongest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // whole characters
  return fmt::format("\"{}…\"", text.substr(0, end));
}

Json with_overrides(const PreparationKind& kind, Json settings, const Json& overrides, const std::string& where) {
  if (!overrides.is_object()) fail_usage(where, "expected a JSON object of settings, got {}", overrides.type_name());
  std::vector<std::string> keys;
  for (const Setting& setting : kind.settings) {
    keys.push_back(setting.key);
    const auto value = overrides.find(setting.key);
    if (value == overrides.end()) continue;
    const Json& standard = setting.default_value;
    // Integers may come signed or unsigned; a setting given by a word may come in its stored form, an object.
    const bool fits = standard.is_number_integer() ? value->is_number_integer()
                      : standard.is_string()       ? value->is_string() || value->is_object()
                                                   : value->type() == standard.type();
    if (!fits) {
      fail_usage(where, "{}: expected a value like {}, got {}", setting.key, json_line(standard), json_line(*value));
    }
    settings[setting.key] = *value;
  }
  for (const auto& [key, value] : overrides.items()) {
    if (!settings.contains(key)) fail_usage(where, "unknown key {}{}", key, suggestion(key, keys));
  }
  return settings;
}

}  // namespace etc::prepare
