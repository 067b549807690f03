#include "data/readers/json_record.h"

#include <simdjson.h>

#include <algorithm>
#include <new>

#include "data/readers/flat_rows.h"
#include "data/readers/kept_parser.h"
#include "data/text/unicode.h"

namespace etc::data {

namespace {

namespace dom = simdjson::dom;

// Empties a value of at most kMaxDepth levels, the innermost first. The library's destructor first moves the elements
// into a new list, which terminates the process when memory is exhausted.
void release(Json& value) noexcept {
  if (value.is_array()) {
    auto& elements = value.get_ref<Json::array_t&>();
    for (Json& element : elements) release(element);
    elements.clear();
  } else if (value.is_object()) {
    auto& members = value.get_ref<Json::object_t&>();
    for (auto& member : members) release(member.second);
    members.clear();
  }
}

// Converts simdjson's value to the record's and notes duplicate keys.
class ValueBuilder {
 public:
  ValueBuilder(JsonRecord& record, const UnreadMembers& unread, const FlatLists& flat)
      : record_(record), unread_(unread), flat_(flat), unread_of_record_(unread_in("")) {}

  void build_record(dom::element root) {
    record_.notes.clear();
    record_.columns.clear();
    release(record_.value);
    record_.value = nullptr;
    build(root, 0, record_.value);
  }

 private:
  // Builds in place, in a value that already belongs to the record, so that on bad_alloc the record owns every part
  // built so far.
  void build(dom::element element, int level, Json& value) {
    switch (element.type()) {
      case dom::element_type::OBJECT:
        value = Json::object();
        if (level < kMaxDepth) build_object(dom::object(element), level, value.get_ref<Json::object_t&>());
        break;
      case dom::element_type::ARRAY:
        value = Json::array();
        if (level < kMaxDepth) build_array(dom::array(element), level, value.get_ref<Json::array_t&>());
        break;
      case dom::element_type::STRING:
        value = std::string(std::string_view(element));
        break;
      case dom::element_type::INT64:
        value = std::int64_t(element);
        break;
      case dom::element_type::UINT64:
        value = std::uint64_t(element);
        break;
      case dom::element_type::DOUBLE:
        value = double(element);
        break;
      case dom::element_type::BOOL:
        value = bool(element);
        break;
      case dom::element_type::NULL_VALUE:
        value = nullptr;
        break;
    }
  }

  void build_object(dom::object object, int level, Json::object_t& members) {
    if (level == 1) unread_of_list_.clear();
    const Names* unread = level == 0 ? &unread_of_record_ : level == 2 ? &unread_of_list_ : nullptr;
    for (const auto field : object) {
      if (unread != nullptr && std::find(unread->begin(), unread->end(), field.key) != unread->end()) continue;
      place_.push_back({field.key, 0});
      const auto [member, fresh] = members.try_emplace(std::string(field.key));
      if (!fresh) {
        record_.notes.push_back({JsonNote::Kind::duplicate_key, place_text()});
        if (level == 0) record_.columns.erase(member->first);
        release(member->second);
      }
      build(field.value, level + 1, member->second);
      place_.pop_back();
    }
  }

  void build_array(dom::array array, int level, Json::array_t& elements) {
    if (level <= 1) unread_of_list_ = level == 1 && !place_[0].key.empty() ? unread_in(place_[0].key) : Names();
    if (level == 1 && read_columns(place_[0].key, array)) return;
    elements.reserve(array.size());
    for (const dom::element element : array) {
      place_.push_back({{}, elements.size()});
      elements.emplace_back();  // a JSON null
      build(element, level + 1, elements.back());
      place_.pop_back();
    }
  }

  // Reads a list that is a member of the record by columns; true if that succeeded. (Empty name: an element of a list.)
  bool read_columns(std::string_view name, dom::array rows) {
    const auto members = flat_.find(name);
    if (members == flat_.end()) return false;
    auto list = flat_rows(rows, members->second, unread_of_list_);
    return list && record_.columns.try_emplace(members->first, std::move(*list)).second;
  }

  // Unread members of the objects in this list, which is a member of the record. "": unread members of the record
  // itself.
  std::vector<std::string_view> unread_in(std::string_view list) const {
    std::vector<std::string_view> names;
    for (const auto& [member, of_elements] : unread_.left_out) {
      if (list.empty() ? of_elements.empty() : member == list && !of_elements.empty()) {
        names.push_back(list.empty() ? member : of_elements);
      }
    }
    return names;
  }

  // "supports[2]", "annotations[0].kind"
  std::string place_text() const {
    std::string text;
    for (const Step& step : place_) {
      if (step.key.data() == nullptr) {
        text += fmt::format("[{}]", step.index);
      } else {
        text += (text.empty() ? "" : ".") + std::string(step.key);
      }
    }
    return text;
  }

  struct Step {
    std::string_view key;   // null data: an element of an array
    std::size_t index = 0;  // of the element
  };

  using Names = std::vector<std::string_view>;

  JsonRecord& record_;
  const UnreadMembers& unread_;
  const FlatLists& flat_;
  const Names unread_of_record_;
  Names unread_of_list_;     // of the objects in the list being built
  std::vector<Step> place_;  // of the value being built
};

// Largest number of brackets open at the same time.
std::size_t nesting(std::string_view text) {
  std::size_t open = 0, deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++open);
    } else if ((c == '}' || c == ']') && open > 0) {
      --open;
    }
  }
  return deepest;
}

// Parses into `record`; false when simdjson refuses the text.
bool parse(std::string& text, const UnreadMembers& unread, const FlatLists& flat, JsonRecord& record) {
  static_assert(kTextPadding >= simdjson::SIMDJSON_PADDING);
  const KeptParser parser;
  text.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  dom::element root;
  auto error = parser->parse(text.data(), text.size(), false).get(root);
  if (error == simdjson::DEPTH_ERROR) {
    // Nesting is limited by memory alone: the parser needs two machine words per level.
    error = parser->allocate(std::max(text.size(), parser->capacity()), nesting(text) + 2);
    if (!error) error = parser->parse(text.data(), text.size(), false).get(root);
  }
  if (error == simdjson::MEMALLOC) throw std::bad_alloc();  // not a fault of the text
  if (!error) ValueBuilder(record, unread, flat).build_record(root);
  return !error;
}

// Finds the first violation of the JSON grammar.
struct GrammarCheck : nlohmann::json_sax<Json> {
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return ++level > 0; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return level-- > 0; }
  bool start_array(std::size_t) override { return ++level > 0; }
  bool end_array() override { return level-- > 0; }
  bool parse_error(std::size_t read, const std::string&, const nlohmann::detail::exception& error) override {
    constexpr int kOutOfRange = 406;
    if (error.id == kOutOfRange) return false;  // a number too large for a double is still valid JSON
    offset = read > 0 ? read - 1 : 0;
    // "…: syntax error while parsing value - <what>; last read: '<token>'; expected <token>"; the token may be long.
    std::string what = error.what();
    const auto dash = what.find(" - ");
    if (dash != std::string::npos) what.erase(0, dash + 3);
    message = what.substr(0, what.find("; last read: "));
    return false;
  }
  std::size_t offset = 0;
  std::string message;     // empty: no fault
  std::int64_t level = 0;  // nesting of objects and arrays
};

// Replaces every escape of half a surrogate pair by \ufffX in place (same length); returns how many there were.
int replace_unpaired_surrogates(std::string& text, char last_digit) {
  const auto code_unit = [&](std::size_t at) -> unsigned {
    if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') return 0;
    unsigned value = 0;
    for (std::size_t i = at + 2; i < at + 6; ++i) {
      const char c = text[i];
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) return 0;
      value = value * 16 + static_cast<unsigned>(digit);
    }
    return value;
  };
  const auto is_high = [](unsigned unit) { return unit >= 0xD800 && unit < 0xDC00; };
  const auto is_low = [](unsigned unit) { return unit >= 0xDC00 && unit < 0xE000; };
  int count = 0;
  for (std::size_t i = text.find('\\'); i < text.size(); i = text.find('\\', i)) {
    const unsigned unit = code_unit(i);
    if (is_high(unit) && is_low(code_unit(i + 6))) {
      i += 12;
    } else if (is_high(unit) || is_low(unit)) {
      text.replace(i, 6, {'\\', 'u', 'f', 'f', 'f', last_digit});
      ++count;
      i += 6;
    } else {
      i += 2;  // an escaped backslash must not start the next escape
    }
  }
  return count;
}

bool is_json_number(std::string_view token) {
  std::size_t at = 0;
  const auto skip = [&](std::string_view one_of) {
    const bool found = at < token.size() && one_of.find(token[at]) != std::string_view::npos;
    at += found ? 1 : 0;
    return found;
  };
  const auto digits = [&] {
    const std::size_t begin = at;
    while (skip("0123456789")) {
    }
    return at > begin;
  };
  skip("-");
  if (!skip("0") && !digits()) return false;
  if (skip(".") && !digits()) return false;
  if (skip("eE")) {
    skip("+-");
    if (!digits()) return false;
  }
  return at == token.size();
}

// Whether this token is a JSON number beyond 64 bits or a double's range.
bool is_out_of_range(std::string_view token) {
  constexpr std::size_t kFits = 18;  // digits of an integer that always fit
  const bool whole = token.find_first_of(".eE") == std::string_view::npos;
  if (token.size() <= kFits && token.find_first_of("eE") == std::string_view::npos) return false;
  if (!is_json_number(token)) return false;
  try {
    return Json::parse(token).is_number_float() && whole;  // to this library such an integer is a float
  } catch (const Json::out_of_range&) {
    return true;
  }
}

constexpr std::string_view kNull = "null", kTrue = "true";  // shorter than any number out of range: 1e309

// Replaces every number out of range in place, outside of strings, by null and blanks; returns where.
std::vector<std::size_t> replace_numbers_out_of_range(std::string& text) {
  std::vector<std::size_t> places;
  bool in_string = false;
  for (std::size_t i = 0, end = 0; i < text.size(); i = end) {
    end = i + 1;
    if (in_string) {
      if (text[i] == '\\') ++end;
      in_string = text[i] != '"';
    } else if (text[i] == '"') {
      in_string = true;
    } else if (text[i] == '-' || (text[i] >= '0' && text[i] <= '9')) {
      end = std::min(text.find_first_not_of("+-.0123456789eE", i), text.size());
      if (!is_out_of_range(std::string_view(text).substr(i, end - i))) continue;
      std::fill(text.begin() + static_cast<std::ptrdiff_t>(i), text.begin() + static_cast<std::ptrdiff_t>(end), ' ');
      text.replace(i, kNull.size(), kNull);
      places.push_back(i);
    }
  }
  return places;
}

// Fields that differ between two equally built values.
void note_differences(const Json& a, const Json& b, const std::string& path, JsonNote::Kind kind,
                      std::vector<JsonNote>& notes) {
  if (a.is_object() && b.is_object()) {
    for (const auto& [key, value] : a.items()) {
      const std::string field = path.empty() ? key : path + "." + key;
      const auto other = b.find(key);
      if (other == b.end()) {
        notes.push_back({kind, field});  // the difference is in the key
      } else {
        note_differences(value, *other, field, kind, notes);
      }
    }
  } else if (a.is_array() && b.is_array() && a.size() == b.size()) {
    for (std::size_t i = 0; i < a.size(); ++i)
      note_differences(a[i], b[i], fmt::format("{}[{}]", path, i), kind, notes);
  } else if (a != b) {
    notes.push_back({kind, path});
  }
}

// simdjson refuses a string with an unpaired surrogate. The text is then parsed twice, with two different replacement
// characters: the fields where the two values differ held the surrogates. (Nothing is read by columns, because columns
// have no paths.)
bool parse_with_unpaired_surrogates(std::string& text, const UnreadMembers& unread, JsonRecord& record) {
  std::string other_text = text;
  if (replace_unpaired_surrogates(text, 'd') == 0) return false;
  replace_unpaired_surrogates(other_text, 'c');
  JsonRecord other;
  if (!parse(text, unread, {}, record) || !parse(other_text, unread, {}, other)) return false;
  note_differences(record.value, other.value, "", JsonNote::Kind::unpaired_surrogate, record.notes);
  return true;
}

// simdjson refuses a number out of range. As above, the fields in which two replacements differ held such numbers: where
// the task reads one of them, the record has no value.
bool parse_with_numbers_out_of_range(std::string& text, const UnreadMembers& unread, JsonRecord& record) {
  constexpr JsonNote::Kind kOutOfRange = JsonNote::Kind::number_out_of_range;
  const std::vector<std::size_t> replaced = replace_numbers_out_of_range(text);
  if (replaced.empty()) return false;
  std::string other_text = text;
  for (const std::size_t at : replaced) other_text.replace(at, kTrue.size(), kTrue);
  const auto parse_any = [&](std::string& some, JsonRecord& result) {
    return parse(some, unread, {}, result) || parse_with_unpaired_surrogates(some, unread, result);
  };
  JsonRecord other;
  if (!parse_any(text, record) || !parse_any(other_text, other)) return false;
  std::vector<JsonNote> fields;
  note_differences(record.value, other.value, "", kOutOfRange, fields);
  for (const JsonNote& place : fields) {
    if (!unread.reads(place.field)) continue;
    release(record.value);
    record.value = nullptr;
    record.notes = {{kOutOfRange, place.field.substr(0, place.field.find_first_of(".["))}};
    break;
  }
  return true;
}

}  // namespace

bool UnreadMembers::reads(std::string_view field) const {
  return read.empty() || std::any_of(read.begin(), read.end(), [&](const std::string& name) {
           return field.starts_with(name) &&
                  (field.size() == name.size() || field[name.size()] == '.' || field[name.size()] == '[');
         });
}

JsonRecord::~JsonRecord() {
  release(value);
}

JsonRecord parse_record(RecordSlice& slice, const UnreadMembers& unread, const FlatLists& flat) {
  JsonRecord record;
  record.index = slice.index;
  record.begin = slice.begin;
  const bool whole = slice.cut_short.empty();
  if (whole && parse(slice.text, unread, flat, record)) return record;

  TextPosition where = slice.begin;
  if (const auto offset = invalid_utf8(slice.text)) {
    // A character cut by the end of the file is reported as truncation, below.
    if ((whole && !slice.open_line) || *offset + 4 <= slice.text.size()) {
      where.advance(slice.text.data(), *offset);
      throw InputFault("utf8_invalid", where, "not well-formed UTF-8");
    }
  }
  // In this order: the first looks for half surrogate pairs, too.
  if (whole && parse_with_numbers_out_of_range(slice.text, unread, record)) return record;
  if (whole && parse_with_unpaired_surrogates(slice.text, unread, record)) return record;

  GrammarCheck check;
  Json::sax_parse(slice.text, &check);
  const bool at_the_end = check.message.empty() || check.offset >= slice.text.size();
  if (!at_the_end && slice.text[check.offset] == '\0') check.message = "unexpected zero byte";
  where.advance(slice.text.data(), at_the_end ? slice.text.size() : check.offset);
  if (slice.open_line && at_the_end) {
    slice.cut_short = kEndsInsideRecord;
    throw InputFault("json_syntax", where, slice.cut_short);
  }
  if (!whole && at_the_end) throw InputFault("json_syntax", where, slice.cut_short);
  throw InputFault("json_syntax", where, "not valid JSON: " + check.message);
}

Json value_of(const RecordSlice& slice) {
  RecordSlice copy = slice;  // parsing may change the text
  const UnreadMembers reads_itself({}, {""});
  return std::move(parse_record(copy, reads_itself).value);
}

}  // namespace etc::data
