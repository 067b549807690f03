// Checks of feature lists, and the features of /rejects.
#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "data/h5/table.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"

namespace etc::data {

const FeatureSpec& Schema::feature(std::string_view name) const {
  for (const FeatureSpec& spec : features) {
    if (spec.name == name) return spec;
  }
  fail("schema", "task {} has no feature {}", task, name);
}

namespace {

constexpr std::pair<Severity, const char*> kSeverities[] = {
    {Severity::fatal, "fatal"}, {Severity::reject, "reject"}, {Severity::drop, "drop"}, {Severity::warn, "warn"}};

Severity severity_of(const std::string& text, const std::string& where) {
  for (const auto& [severity, name] : kSeverities) {
    if (text == name) return severity;
  }
  fail(where + ":/rejects/severity", "expected fatal, reject, drop or warn, got \"{}\" ({})", text, h5::kDamaged);
}

}  // namespace

const char* severity_text(Severity severity) {
  const auto named = [severity](const auto& entry) { return entry.first == severity; };
  return std::find_if(std::begin(kSeverities), std::end(kSeverities), named)->second;
}

namespace h5 {

void check_features(const std::vector<FeatureSpec>& features, const std::string& where) {
  std::set<std::string> names;
  for (const FeatureSpec& spec : features) {
    if (spec.name.empty() || spec.name == "." || spec.name.find('/') != std::string::npos)
      fail(where, "expected a feature name without '/', got \"{}\"", spec.name);
    if (!names.insert(spec.name).second) fail(where, "feature {} is declared twice", spec.name);
    const bool text = spec.kind == FeatureKind::string || spec.kind == FeatureKind::strings;
    if (text && spec.type != StoredType::u8) fail(where, "feature {}: expected strings to be stored as u8", spec.name);
    const bool list = spec.kind == FeatureKind::ragged || spec.kind == FeatureKind::strings;
    if (!spec.align.empty() && !list)
      fail(where, "feature {}: expected a list, since it belongs to the align class {}", spec.name, spec.align);
  }
}

namespace {

bool is_absent(const FeatureSpec& spec, const Json& settings) {
  return spec.stored_with != nullptr && !spec.stored_with(settings);
}

}  // namespace

std::vector<FeatureSpec> stored_features(const Schema& schema, const Json& settings) {
  std::vector<FeatureSpec> features = schema.features;
  std::erase_if(features,
                [&](const FeatureSpec& spec) { return spec.name == kSettingsFeature || is_absent(spec, settings); });
  return features;
}

Example absent_features(const Schema& schema, const Json& settings) {
  Example absent;
  for (const FeatureSpec& spec : schema.features) {
    if (!is_absent(spec, settings)) continue;
    if (spec.kind != FeatureKind::ragged) fail("schema", "feature {}: expected a list that is left out", spec.name);
    if (spec.type == StoredType::f32) {
      absent[spec.name] = std::vector<float>();
    } else {
      absent[spec.name] = std::vector<std::int64_t>();
    }
  }
  return absent;
}

std::vector<FeatureSpec> fault_features(const Schema& schema) {
  constexpr FeatureKind kText = FeatureKind::string, kNumber = FeatureKind::scalar;
  std::vector<FeatureSpec> features{
      {"file", kText, StoredType::u8, "", {}, {}},           {"record_index", kNumber, StoredType::i64, "", {}, {}},
      {"byte_offset", kNumber, StoredType::i64, "", {}, {}}, {"id", kText, StoredType::u8, "", {}, {}},
      {"field", kText, StoredType::u8, "", {}, {}},          {"code", kText, StoredType::u8, "", {}, {}},
      {"severity", kText, StoredType::u8, "", {}, {}},       {"message", kText, StoredType::u8, "", {}, {}},
  };
  features.insert(features.end(), schema.reject_features.begin(), schema.reject_features.end());
  return features;
}

Example example_of(const Fault& fault, const Schema& schema) {
  Example row = {{"file", fault.file},
                 {"record_index", fault.record_index},
                 {"byte_offset", fault.byte_offset},
                 {"id", fault.id},
                 {"field", fault.field},
                 {"code", fault.code},
                 {"severity", std::string(severity_text(fault.severity))},
                 {"message", fault.message}};
  for (const FeatureSpec& spec : schema.reject_features) {
    const auto given = fault.details.find(spec.name);
    if (given != fault.details.end()) {
      row[spec.name] = given->second;
    } else if (spec.kind == FeatureKind::string) {
      row[spec.name] = std::string();
    } else {
      row[spec.name] = std::vector<std::string>();
    }
  }
  return row;
}

Fault fault_of(const Example& row, const Schema& schema, const std::string& where) {
  const auto text = [&](const char* name) { return std::get<std::string>(row.find(name)->second); };
  const auto number = [&](const char* name) { return std::get<std::int64_t>(row.find(name)->second); };
  Fault fault{text("file"),
              number("record_index"),
              number("byte_offset"),
              text("id"),
              text("field"),
              text("code"),
              severity_of(text("severity"), where),
              text("message")};
  for (const FeatureSpec& spec : schema.reject_features) fault.details[spec.name] = row.find(spec.name)->second;
  return fault;
}

}  // namespace h5
}  // namespace etc::data
