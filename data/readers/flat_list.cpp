#include "data/readers/flat_list.h"

#include <simdjson.h>

#include "data/readers/kept_parser.h"

namespace etc::data {

namespace {

namespace dom = simdjson::dom;

// Appends the rows of a list; false at the first thing that is not as it must be.
class Filler {
 public:
  Filler(const FlatMembers& members, FlatList& list) : members_(members), list_(list) {
    list_.texts.resize(members.texts.size());
    list_.integers.resize(members.integers.size());
    list_.floats.resize(members.floats.size());
  }

  bool add(dom::element row) {
    dom::object object;
    if (row.get(object)) return false;
    std::size_t found = 0;
    for (const auto field : object) {
      if (!add_member(field.key, field.value)) return false;
      ++found;
    }
    ++list_.rows;
    return found == list_.texts.size() + list_.integers.size() + list_.floats.size();
  }

 private:
  bool add_member(std::string_view key, dom::element value) {
    for (std::size_t m = 0; m < members_.texts.size(); ++m) {
      if (key == members_.texts[m]) return add_text(value, list_.texts[m]);
    }
    for (std::size_t m = 0; m < members_.integers.size(); ++m) {
      if (key == members_.integers[m]) return add_integer(value, list_.integers[m]);
    }
    for (std::size_t m = 0; m < members_.floats.size(); ++m) {
      const auto& [name, size] = members_.floats[m];
      if (key == name) return add_floats(value, size, list_.floats[m]);
    }
    return false;
  }

  // A second value of the same row would be one too many.
  bool add_text(dom::element value, std::vector<std::string>& column) const {
    std::string_view text;
    if (column.size() != list_.rows || value.get(text)) return false;
    column.emplace_back(text);
    return true;
  }

  bool add_integer(dom::element value, std::vector<std::int64_t>& column) const {
    if (column.size() != list_.rows || !value.is<std::int64_t>()) return false;
    column.push_back(std::int64_t(value));
    return true;
  }

  bool add_floats(dom::element value, std::size_t size, std::vector<double>& column) const {
    dom::array numbers;
    if (column.size() != list_.rows * size || value.get(numbers)) return false;
    for (const dom::element number : numbers) {
      if (number.type() != dom::element_type::DOUBLE) return false;
      column.push_back(double(number));
    }
    return column.size() == (list_.rows + 1) * size;
  }

  const FlatMembers& members_;
  FlatList& list_;
};

bool fill(dom::parser& parser, std::string_view text, const FlatMembers& members, FlatList& list) {
  dom::array rows;
  if (parser.parse(text.data(), text.size()).get(rows)) return false;
  Filler filler(members, list);
  for (const dom::element row : rows) {
    if (!filler.add(row)) return false;
  }
  return true;
}

}  // namespace

std::optional<FlatList> read_flat_list(std::string_view text, const FlatMembers& members) {
  const KeptParser parser;
  FlatList list;
  if (!fill(*parser, text, members, list)) return std::nullopt;
  return list;
}

}  // namespace etc::data
