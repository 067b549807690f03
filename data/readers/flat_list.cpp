#include "data/readers/flat_list.h"

#include <simdjson.h>

#include <algorithm>

#include "data/readers/flat_rows.h"
#include "data/readers/kept_parser.h"

namespace etc::data {

namespace {

namespace dom = simdjson::dom;

// Appends the rows of a list; false at the first thing that is not as it must be.
class Filler {
 public:
  Filler(const FlatMembers& members, const std::vector<std::string_view>& unread, FlatList& list)
      : members_(members), unread_(unread), list_(list) {
    list_.texts.resize(members.texts.size());
    list_.integers.resize(members.integers.size());
    list_.floats.resize(members.floats.size());
    list_.flags.resize(members.flags.size());
  }

  bool add(dom::element row) {
    dom::object object;
    if (row.get(object)) return false;
    std::size_t found = 0;
    for (const auto field : object) {
      if (is_unread(field.key)) continue;
      if (!add_member(field.key, field.value)) return false;
      ++found;
    }
    ++list_.rows;
    return found == list_.texts.size() + list_.integers.size() + list_.floats.size() + list_.flags.size();
  }

 private:
  bool is_unread(std::string_view key) const { return std::find(unread_.begin(), unread_.end(), key) != unread_.end(); }

  bool add_member(std::string_view key, dom::element value) {
    for (std::size_t m = 0; m < members_.texts.size(); ++m) {
      if (key == members_.texts[m]) return add_text(value, list_.texts[m]);
    }
    for (std::size_t m = 0; m < members_.flags.size(); ++m) {
      if (key == members_.flags[m]) return add_flag(value, list_.flags[m]);
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

  bool add_flag(dom::element value, std::vector<bool>& column) const {
    bool flag = false;
    if (column.size() != list_.rows || value.get(flag)) return false;
    column.push_back(flag);
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
  const std::vector<std::string_view>& unread_;
  FlatList& list_;
};

}  // namespace

std::optional<FlatList> flat_rows(dom::array rows, const FlatMembers& members,
                                  const std::vector<std::string_view>& unread) {
  std::optional<FlatList> list(std::in_place);
  Filler filler(members, unread, *list);
  for (const dom::element row : rows) {
    if (!filler.add(row)) return std::nullopt;
  }
  return list;
}

std::optional<FlatList> read_flat_list(std::string_view text, const FlatMembers& members) {
  const KeptParser parser;
  dom::array rows;
  if (parser->parse(text.data(), text.size()).get(rows)) return std::nullopt;
  return flat_rows(rows, members);
}

}  // namespace etc::data
