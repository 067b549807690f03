#include <algorithm>
#include <limits>
#include <variant>

#include "data/h5/attributes.h"
#include "data/h5/table.h"
#include "data/text/unicode.h"
#include "etc_core/base/error.h"

namespace etc::data::h5 {

namespace {

constexpr NumberType kOffsetType{8, true, false};

const char* value_name(const FeatureValue& value) {
  static constexpr const char* kNames[] = {"an integer",       "a float",  "a list of integers",
                                           "a list of floats", "a string", "a list of strings"};
  return kNames[value.index()];
}

// Index of the alternative of FeatureValue that a feature takes.
std::size_t wanted_alternative(const FeatureSpec& spec) {
  const std::size_t is_float = spec.type == StoredType::f32 ? 1 : 0;
  switch (spec.kind) {
    case FeatureKind::scalar:
      return 0 + is_float;
    case FeatureKind::ragged:
      return 2 + is_float;
    case FeatureKind::string:
      return 4;
    case FeatureKind::strings:
      return 5;
  }
  fail("h5", "unknown feature kind {}", static_cast<int>(spec.kind));
}

const char* wanted_name(const FeatureSpec& spec) {
  static const FeatureValue kValues[] = {std::int64_t{},       float{},       std::vector<std::int64_t>{},
                                         std::vector<float>{}, std::string{}, std::vector<std::string>{}};
  return value_name(kValues[wanted_alternative(spec)]);
}

// Elements of a list (what `offsets` counts); the bytes of a string.
std::int64_t length_of(const FeatureValue& value) {
  return std::visit(
      [](const auto& held) -> std::int64_t {
        if constexpr (requires { held.size(); }) return static_cast<std::int64_t>(held.size());
        return 1;
      },
      value);
}

// The first integer outside the range, if any.
std::optional<std::int64_t> outlier(const FeatureValue& value, IntegerRange range) {
  if (range.lowest == std::numeric_limits<std::int64_t>::min()) return std::nullopt;  // int64: all are inside
  const auto outside = [&](std::int64_t x) { return x < range.lowest || x > range.highest; };
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    if (outside(*number)) return *number;
  } else if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
    // A difference below 0 sets the sign bit (lowest <= 0 <= highest, so the unsigned differences cannot wrap past it).
    // The OR of all differences vectorises; values are searched one by one only if the OR has the sign bit.
    const auto lowest = static_cast<std::uint64_t>(range.lowest), highest = static_cast<std::uint64_t>(range.highest);
    std::uint64_t signs = 0;
    for (const std::int64_t x : *list) {
      signs |= (static_cast<std::uint64_t>(x) - lowest) | (highest - static_cast<std::uint64_t>(x));
    }
    const auto found = signs >> 63 == 0 ? list->end() : std::find_if(list->begin(), list->end(), outside);
    if (found != list->end()) return *found;
  }
  return std::nullopt;
}

bool is_utf8(const FeatureValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return !invalid_utf8(*text);
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
    return std::none_of(list->begin(), list->end(),
                        [](const std::string& text) { return invalid_utf8(text).has_value(); });
  }
  return true;
}

}  // namespace

TableWriter::TableWriter(hid_t file, const std::string& name, std::vector<FeatureSpec> features,
                         const std::string& where)
    : where_(where + ":/" + name) {
  check_features(features, where_);
  const Handle group = create_group(file, name, where_);
  features_.reserve(features.size());
  for (const FeatureSpec& spec : features) create(group.id(), spec, "/" + name);
}

void TableWriter::create(hid_t table, const FeatureSpec& spec, const std::string& table_path) {
  const std::string where = where_ + "/" + spec.name;
  const Handle group = create_group(table, spec.name, where);
  if (!spec.align.empty()) write_text(group.id(), "align", spec.align, where);
  if (spec.missing_value) write_integer(group.id(), "missing_value", *spec.missing_value, kOffsetType, where);
  if (const auto* number = std::get_if<std::int64_t>(&spec.pad_value)) {
    write_integer(group.id(), "pad_value", *number, kOffsetType, where);
  } else if (const auto* word = std::get_if<std::string>(&spec.pad_value)) {
    write_text(group.id(), "pad_value", *word, where);
  }

  const auto column = [&](const char* name, NumberType type) {
    data_sets_.push_back(table_path + "/" + spec.name + "/" + name);
    return ColumnWriter(group.id(), name, type, where + "/" + name);
  };
  const std::int64_t zero = 0;
  Feature feature{spec, where, column("values", number_type(spec.type)), std::nullopt, std::nullopt};
  if (spec.kind == FeatureKind::strings) {
    feature.item_offsets = column("item_offsets", kOffsetType);
    feature.item_offsets->append({&zero, 1});
  }
  const auto owner = owners_.find(spec.align);
  if (owner != owners_.end()) {
    data_sets_.push_back(table_path + "/" + spec.name + "/offsets");
    require(
        H5Lcreate_hard(table, (owner->second + "/offsets").c_str(), group.id(), "offsets", H5P_DEFAULT, H5P_DEFAULT),
        where, "link the offsets");
  } else if (spec.kind != FeatureKind::scalar) {
    feature.offsets = column("offsets", kOffsetType);
    feature.offsets->append({&zero, 1});
    if (!spec.align.empty()) owners_[spec.align] = spec.name;
  }
  features_.push_back(std::move(feature));
}

void TableWriter::append(const Example& row) {
  check_row(row);
  require_whole();
  broken_ = true;
  for (Feature& feature : features_) {
    const FeatureValue& value = row.find(feature.spec.name)->second;
    append_value(feature, value);
    if (!feature.spec.align.empty()) {
      std::int64_t& longest = longest_[feature.spec.align];
      longest = std::max(longest, length_of(value));
    }
  }
  ++rows_;
  broken_ = false;
}

void TableWriter::flush() {
  require_whole();
  for (Feature& feature : features_) {
    feature.values.flush();
    if (feature.offsets) feature.offsets->flush();
    if (feature.item_offsets) feature.item_offsets->flush();
  }
}

void TableWriter::require_whole() const {
  if (broken_) fail(where_, "an earlier write failed, so the table cannot be continued (write the file anew)");
}

std::int64_t TableWriter::longest(std::string_view align) const {
  const auto found = longest_.find(align);
  return found == longest_.end() ? 0 : found->second;
}

void TableWriter::check_row(const Example& row) const {
  std::map<std::string_view, std::pair<const Feature*, std::int64_t>> lengths;  // align class → first feature, length
  for (const Feature& feature : features_) {
    const FeatureValue& value = checked_value(feature, row);
    if (feature.spec.align.empty()) continue;
    const auto [first, is_new] = lengths.try_emplace(feature.spec.align, &feature, length_of(value));
    const auto& [owner, length] = first->second;
    if (length != length_of(value))
      fail_row(feature, row,
               fmt::format("expected {} elements as in {} (align class {}), got {}", length, owner->spec.name,
                           feature.spec.align, length_of(value)));
  }
  if (row.size() == features_.size()) return;
  for (const auto& [name, value] : row) {
    const bool known = std::any_of(features_.begin(), features_.end(),
                                   [&](const Feature& feature) { return feature.spec.name == name; });
    if (!known) fail(where_, "row {}: unknown feature {}", rows_, name);
  }
}

const FeatureValue& TableWriter::checked_value(const Feature& feature, const Example& row) const {
  const FeatureSpec& spec = feature.spec;
  const auto found = row.find(spec.name);
  if (found == row.end()) fail_row(feature, row, "the feature is missing");
  const FeatureValue& value = found->second;
  if (value.index() != wanted_alternative(spec))
    fail_row(feature, row, fmt::format("expected {}, got {}", wanted_name(spec), value_name(value)));
  const NumberType type = number_type(spec.type);
  if (!type.is_float) {
    if (const auto bad = outlier(value, integer_range(type)))
      fail_row(feature, row, fmt::format("expected values that fit into {}, got {}", number_name(type), *bad));
  }
  if (!is_utf8(value)) fail_row(feature, row, "expected well-formed UTF-8");
  return value;
}

void TableWriter::fail_row(const Feature& feature, const Example& row, const std::string& what) const {
  const auto id = row.find("id");
  const auto* text = id == row.end() ? nullptr : std::get_if<std::string>(&id->second);
  if (text != nullptr) fail(feature.where, "row {} ({}): {}", rows_, *text, what);
  fail(feature.where, "row {}: {}", rows_, what);
}

void TableWriter::append_value(Feature& feature, const FeatureValue& value) {
  ColumnWriter& values = feature.values;
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    values.append(std::span(number, 1));
  } else if (const auto* real = std::get_if<float>(&value)) {
    values.append(std::span(real, 1));
  } else if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value)) {
    values.append(*numbers);
  } else if (const auto* reals = std::get_if<std::vector<float>>(&value)) {
    values.append(*reals);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    values.append(*text);
  } else {
    for (const std::string& item : std::get<std::vector<std::string>>(value)) {
      values.append(item);
      const std::int64_t border = values.size();
      feature.item_offsets->append({&border, 1});
    }
  }
  if (feature.offsets) {
    // `offsets` counts strings in a list of strings, elements everywhere else; item_offsets has one entry more than
    // strings.
    const std::int64_t border = feature.item_offsets ? feature.item_offsets->size() - 1 : values.size();
    feature.offsets->append({&border, 1});
  }
}

}  // namespace etc::data::h5
