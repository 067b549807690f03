#include "data/readers/flat_list.h"

#include <simdjson.h>

#include <algorithm>
#include <new>

#include "data/readers/flat_rows.h"
#include "data/readers/kept_parser.h"

namespace etc::data {

namespace {

namespace dom = simdjson::dom;

// Appends the rows of a list; false at the first row that does not have the expected form.
class Filler {
 public:
  Filler(const FlatMembers& members, const std::vector<std::string_view>& unread, FlatList& list) : list_(list) {
    for (const std::string_view name : unread) slots_.push_back({name, Kind::unread});
    const auto add_slots = [&](const std::vector<std::string>& names, Kind kind, auto& columns) {
      columns.resize(names.size());
      for (std::size_t m = 0; m < names.size(); ++m) slots_.push_back({names[m], kind, m});
    };
    add_slots(members.texts, Kind::text, list.texts);
    add_slots(members.flags, Kind::flag, list.flags);
    add_slots(members.integers, Kind::integer, list.integers);
    list.floats.resize(members.floats.size());
    for (std::size_t m = 0; m < members.floats.size(); ++m) {
      slots_.push_back({members.floats[m].first, Kind::floats, m, members.floats[m].second});
    }
    members_ = slots_.size() - unread.size();
    order_.resize(slots_.size());
  }

  bool add(dom::element row) {
    dom::object object;
    if (row.get(object)) return false;
    std::size_t place = 0, found = 0;
    for (const auto field : object) {
      const Slot* slot = slot_of(field.key, place++);
      if (slot == nullptr || !add_member(*slot, field.value)) return false;
      if (slot->kind != Kind::unread) ++found;
    }
    ++list_.rows;
    return found == members_;
  }

 private:
  enum class Kind { unread, text, flag, integer, floats };

  // Destination of a member's values.
  struct Slot {
    std::string_view name;
    Kind kind;
    std::size_t column = 0;  // index among the columns of its kind
    std::size_t size = 1;    // values in a row
  };

  // Members usually have the same order as in the previous row, so that slot is tried first. null: no such member.
  const Slot* slot_of(std::string_view key, std::size_t place) {
    if (place < order_.size() && slots_[order_[place]].name == key) return &slots_[order_[place]];
    const auto found = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& slot) { return slot.name == key; });
    if (found == slots_.end()) return nullptr;
    if (place < order_.size()) order_[place] = static_cast<std::size_t>(found - slots_.begin());
    return &*found;
  }

  bool add_member(const Slot& slot, dom::element value) const {
    switch (slot.kind) {
      case Kind::unread:
        break;
      case Kind::text:
        return add_value<std::string_view>(value, list_.texts[slot.column]);
      case Kind::flag:
        return add_value<bool>(value, list_.flags[slot.column]);
      case Kind::integer:
        return add_value<std::int64_t>(value, list_.integers[slot.column]);
      case Kind::floats:
        return add_floats(value, slot.size, list_.floats[slot.column]);
    }
    return true;
  }

  // The size check also refuses a second value for the same row.
  template <typename Value, typename Column>
  bool add_value(dom::element value, Column& column) const {
    if (column.size() != list_.rows || !value.is<Value>()) return false;
    column.emplace_back(Value(value));
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

  FlatList& list_;
  std::vector<Slot> slots_;         // slots of unread members first
  std::size_t members_ = 0;         // number of the other slots
  std::vector<std::size_t> order_;  // slots of the last row's members, by position
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
  const auto error = parser->parse(text.data(), text.size()).get(rows);
  if (error == simdjson::MEMALLOC) throw std::bad_alloc();
  if (error) return std::nullopt;
  return flat_rows(rows, members);
}

}  // namespace etc::data
