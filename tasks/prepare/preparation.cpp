#include "tasks/prepare/preparation.h"

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/words.h"

namespace etc::prepare {

namespace {

data::Fault row(const std::string& field, const std::string& code, data::Severity severity,
                const std::string& message) {
  data::Fault fault;
  fault.field = field;
  fault.code = code;
  fault.severity = severity;
  fault.message = message;
  return fault;
}

}  // namespace

FaultList::FaultList(std::vector<data::Fault> rows, std::vector<data::Fault> quiet_rows,
                     std::vector<std::string> counted)
    : rows_(std::move(rows)), quiet_rows_(std::move(quiet_rows)), counted_(std::move(counted)) {
  for (const data::Fault& row : rows_) {
    rejected_ = rejected_ || row.severity == data::Severity::reject;
    dropped_ = dropped_ || row.severity == data::Severity::drop;
    warned_ = warned_ || row.severity == data::Severity::warn;
  }
  warned_ = warned_ || !quiet_rows_.empty();
}

void FaultList::reject(const std::string& field, const std::string& code, const std::string& message) {
  rows_.push_back(row(field, code, data::Severity::reject, message));
  rejected_ = true;
}

void FaultList::drop(const std::string& field, const std::string& code, const std::string& message) {
  rows_.push_back(row(field, code, data::Severity::drop, message));
  dropped_ = true;
}

void FaultList::warn(const std::string& field, const std::string& code, const std::string& message) {
  rows_.push_back(row(field, code, data::Severity::warn, message));
  warned_ = true;
}

void FaultList::warn_quietly(const std::string& field, const std::string& code, const std::string& message) {
  quiet_rows_.push_back(row(field, code, data::Severity::warn, message));
  warned_ = true;
}

void FaultList::count(const std::string& what) {
  counted_.push_back(what);
}

std::int64_t Preparation::kept_bytes(const InputSize& inputs) const {
  // An id in the map of choice.h: a node with a string of 16 to 31 characters, and its entry in the table.
  constexpr std::int64_t kChosen = 128;
  constexpr std::int64_t kHash = 24;  // while the first pass's list of hashes grows; only repeated ids enter the map
  if (whole_run() != nullptr) return 0;
  return inputs.records * (unique_field() == nullptr ? kChosen : kHash);
}

std::string quoted(std::string_view text) {
  constexpr std::size_t kLongest = 60;  // bytes
  return fmt::format("\"{}\"", shortened(text, kLongest));
}

Json with_overrides(const PreparationKind& kind, Json settings, const Json& overrides, const std::string& where) {
  if (!overrides.is_object()) fail_usage(where, "expected a JSON object of settings, got {}", overrides.type_name());
  for (const auto& [key, value] : overrides.items()) {
    const Field* setting = kind.settings.find(key);
    if (setting == nullptr) fail_usage(where, "unknown key {}{}", key, suggestion(key, kind.settings.names()));
    require_kind(*setting, value, where, key);
    settings[key] = value;
  }
  return settings;
}

}  // namespace etc::prepare
