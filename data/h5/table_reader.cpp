#include <algorithm>
#include <string>

#include "data/h5/table.h"
#include "data/text/unicode.h"
#include "etc_core/base/error.h"

namespace etc::data::h5 {

namespace {

// Reads a whole column of offsets and checks them: 0 first, never decreasing, `last` at the end. The column's length
// was checked against the bytes of the file, so this allocation is bounded.
Buffer<std::int64_t> load_borders(const ColumnReader& column, std::int64_t last, const char* last_is) {
  Buffer<std::int64_t> borders(column.size(), Purpose::data);
  std::int64_t before = 0;
  for (std::int64_t b = 0; b < column.blocks(); ++b) {
    const Block block = column.load(b);
    visit_number(column.type(), [&](auto zero) {
      const auto* values = block.as<decltype(zero)>();
      for (std::int64_t i = 0; i < block.size; ++i) {
        const std::int64_t border = static_cast<std::int64_t>(values[i]);
        const std::int64_t at = block.first + i;
        if (at == 0 && border != 0) fail(column.where(), "expected 0 at the start, got {} ({})", border, kDamaged);
        if (border < before)
          fail(column.where(), "expected non-decreasing, got {} after {} at {} ({})", border, before, at, kDamaged);
        borders[at] = before = border;
      }
    });
  }
  if (before != last) fail(column.where(), "expected {} ({}) at the end, got {} ({})", last, last_is, before, kDamaged);
  return borders;
}

void require_length(const ColumnReader& column, std::int64_t length, const char* why) {
  if (column.size() != length)
    fail(column.where(), "expected {} elements ({}), got {} ({})", length, why, column.size(), kDamaged);
}

// Copies elements [begin, end) of a column, widened, to the end of `out`; Value is the widened type or char.
template <typename Value, typename Out>
void copy_values(const ColumnReader& column, BlockCache& cache, std::int64_t begin, std::int64_t end, Out& out) {
  out.reserve(out.size() + static_cast<std::size_t>(end - begin));
  while (begin < end) {
    const std::int64_t index = begin / column.block_elements();
    const auto block = cache.get(column, index);
    const std::int64_t stop = std::min(end, block->first + block->size);
    visit_number(column.type(), [&](auto zero) {
      const auto* values = block->template as<decltype(zero)>() - block->first;
      for (std::int64_t i = begin; i < stop; ++i) out.push_back(static_cast<Value>(values[i]));
    });
    begin = stop;
  }
}

// Throws unless every value of the block fits into the type the feature is stored as. A file may hold wider integers
// than the store writes; their values must still be in the documented range.
void check_range(const ColumnReader& column, const Block& block, NumberType stored) {
  if (stored.is_float || column.type() == stored) return;
  const IntegerRange range = integer_range(stored);
  visit_number(column.type(), [&](auto zero) {
    const auto* values = block.as<decltype(zero)>();
    for (std::int64_t i = 0; i < block.size; ++i) {
      const std::int64_t value = static_cast<std::int64_t>(values[i]);
      if (value < range.lowest || value > range.highest)
        fail(column.where(), "expected values that fit into {}, got {} at {}", number_name(stored), value,
             block.first + i);
    }
  });
}

// Throws unless the bytes between consecutive offsets are well-formed UTF-8.
class Utf8Check {
 public:
  Utf8Check(const ColumnReader& column, const Buffer<std::int64_t>& borders) : column_(column), borders_(borders) {}

  // The next bytes of the column, in order.
  void take(const Block& block) {
    std::string_view bytes(block.as<char>(), static_cast<std::size_t>(block.size));
    while (!bytes.empty() && string_ + 1 < borders_.size()) {
      const std::int64_t left = borders_[string_ + 1] - borders_[string_] - static_cast<std::int64_t>(text_.size());
      const std::size_t length = std::min(bytes.size(), static_cast<std::size_t>(left));
      text_.append(bytes.substr(0, length));
      bytes.remove_prefix(length);
      if (static_cast<std::int64_t>(length) < left) return;
      if (const auto at = invalid_utf8(text_))
        fail(column_.where(), "expected UTF-8, got an invalid sequence at byte {} of string {} ({})", *at, string_,
             kDamaged);
      text_.clear();
      ++string_;
    }
  }

 private:
  const ColumnReader& column_;
  const Buffer<std::int64_t>& borders_;
  std::int64_t string_ = 0;  // index of the string being collected
  std::string text_;         // its bytes so far
};

}  // namespace

TableReader::TableReader(hid_t file, const std::string& name, const std::vector<FeatureSpec>& features,
                         std::optional<std::int64_t> rows, std::uint64_t file_bytes, const std::string& where) {
  check_features(features, where);
  const std::string table_where = where + ":/" + name;
  const Handle group = open_group(file, name, table_where);
  for (const FeatureSpec& spec : features) open(group.id(), spec, rows, file_bytes, table_where + "/" + spec.name);
  rows_ = rows.value_or(0);
}

void TableReader::open(hid_t table, const FeatureSpec& spec, std::optional<std::int64_t>& rows,
                       std::uint64_t file_bytes, const std::string& where) {
  const Handle group = open_group(table, spec.name, where);
  const auto column = [&](const char* name, NumberClass wanted) {
    return std::make_unique<ColumnReader>(group.id(), name, wanted, file_bytes, where + "/" + name);
  };
  const NumberClass wanted = spec.type == StoredType::f32 ? NumberClass::floating : NumberClass::integer;
  Feature feature{spec, column("values", wanted), nullptr, nullptr};
  const bool text = spec.kind == FeatureKind::string || spec.kind == FeatureKind::strings;
  if (text && feature.values->type().size != 1)
    fail(feature.values->where(), "expected bytes (uint8), got {}", number_name(feature.values->type()));
  if (spec.kind == FeatureKind::scalar) {
    if (!rows) rows = feature.values->size();
    require_length(*feature.values, *rows, "one per row");
    features_.push_back(std::move(feature));
    return;
  }
  const auto offsets = column("offsets", NumberClass::integer);
  if (!rows) rows = std::max<std::int64_t>(offsets->size(), 1) - 1;
  require_length(*offsets, *rows + 1, "one per row and one more");
  if (spec.kind == FeatureKind::strings) {
    const auto item_offsets = column("item_offsets", NumberClass::integer);
    if (item_offsets->size() == 0) fail(item_offsets->where(), "expected at least 1 element, got 0 ({})", kDamaged);
    const std::int64_t strings = item_offsets->size() - 1;
    feature.offsets =
        std::make_shared<const Buffer<std::int64_t>>(load_borders(*offsets, strings, "the number of strings"));
    feature.item_offsets = std::make_shared<const Buffer<std::int64_t>>(
        load_borders(*item_offsets, feature.values->size(), "the length of values"));
  } else {
    feature.offsets = std::make_shared<const Buffer<std::int64_t>>(
        load_borders(*offsets, feature.values->size(), "the length of values"));
  }
  for (const Feature& other : features_) {
    if (spec.align.empty() || other.spec.align != spec.align) continue;
    const auto [mine, theirs] =
        std::mismatch(feature.offsets->begin(), feature.offsets->end(), other.offsets->begin(), other.offsets->end());
    if (mine != feature.offsets->end())
      fail(offsets->where(), "expected the borders of {} (align class {}), got {} instead of {} at {} ({})",
           other.spec.name, spec.align, *mine, *theirs, mine - feature.offsets->begin(), kDamaged);
    feature.offsets = other.offsets;  // one copy per class
    break;
  }
  features_.push_back(std::move(feature));
}

std::int64_t TableReader::bytes() const {
  std::int64_t sum = 0;
  for (const Feature& feature : features_) sum += feature.values->size() * feature.values->type().size;
  return sum;
}

std::int64_t TableReader::block_bytes() const {
  std::int64_t sum = 0;
  for (const Feature& feature : features_)
    sum += std::min(feature.values->size(), feature.values->block_elements()) * feature.values->type().size;
  return sum;
}

Example TableReader::read(std::int64_t row, BlockCache& cache) const {
  Example example;
  for (const Feature& feature : features_) {
    const ColumnReader& values = *feature.values;
    const bool is_float = values.type().is_float;
    const std::int64_t begin = feature.offsets ? (*feature.offsets)[row] : row;
    const std::int64_t end = feature.offsets ? (*feature.offsets)[row + 1] : row + 1;
    FeatureValue& value = example[feature.spec.name];
    switch (feature.spec.kind) {
      case FeatureKind::scalar:
      case FeatureKind::ragged: {
        const bool scalar = feature.spec.kind == FeatureKind::scalar;
        const auto take = [&]<typename Value>(Value) {
          std::vector<Value> list;
          copy_values<Value>(values, cache, begin, end, list);
          if (scalar) {
            value = list.front();
          } else {
            value = std::move(list);
          }
        };
        is_float ? take(float{}) : take(std::int64_t{});
        break;
      }
      case FeatureKind::string:
        copy_values<char>(values, cache, begin, end, value.emplace<std::string>());
        break;
      case FeatureKind::strings: {
        auto& list = value.emplace<std::vector<std::string>>(static_cast<std::size_t>(end - begin));
        for (std::int64_t s = begin; s < end; ++s) {
          copy_values<char>(values, cache, (*feature.item_offsets)[s], (*feature.item_offsets)[s + 1],
                            list[static_cast<std::size_t>(s - begin)]);
        }
        break;
      }
    }
  }
  return example;
}

const Buffer<std::int64_t>* TableReader::borders(std::string_view align) const {
  for (const Feature& feature : features_) {
    if (!align.empty() && feature.spec.align == align) return feature.offsets.get();
  }
  return nullptr;
}

void TableReader::scan() const {
  for (const Feature& feature : features_) {
    const ColumnReader& values = *feature.values;
    std::optional<Utf8Check> utf8;
    if (feature.spec.kind == FeatureKind::string) utf8.emplace(values, *feature.offsets);
    if (feature.spec.kind == FeatureKind::strings) utf8.emplace(values, *feature.item_offsets);
    for (std::int64_t b = 0; b < values.blocks(); ++b) {
      const Block block = values.load(b);
      check_range(values, block, number_type(feature.spec.type));
      if (utf8) utf8->take(block);
    }
  }
}

}  // namespace etc::data::h5
