// The keys of a struct of options, each declared once: name, member, help, and allowed values.
//
//   struct Options { double label_smoothing = 0; };
//   const FieldList<Options> kFields{{"label_smoothing", &Options::label_smoothing, "…", {.least = 0, .below = 1}}};
//
// The list provides the defaults (those of the struct itself), reading with checks, writing, and the texts of the
// command line and --help. Code that reads the struct must check relations between members itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "etc_core/base/json_fwd.h"

namespace etc {

// natural: uint64; word: an enum, written by name in JSON; json: any value, checked by the code that reads it.
enum class FieldKind { boolean, integer, natural, optional_integer, number, text, texts, word, json };

// The allowed values of a field. Numbers must always be finite.
struct FieldRule {
  double least = -std::numeric_limits<double>::infinity();
  double above = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  double below = std::numeric_limits<double>::infinity();
  std::vector<std::string> words = {};  // a text, or each of texts, is one of these; empty: any text
};

struct Field {
  std::string name;  // the key in JSON
  FieldKind kind = FieldKind::text;
  std::string help = {};
  FieldRule rule = {};
  int mark = 0;                    // further information on a key, in numbers that the list's owner defines
  std::vector<int> numbers = {};   // word: the enum's value of each of rule.words
  std::size_t offset = 0;          // of the member in the struct
  const void* defaults = nullptr;  // a struct with the members' defaults
  std::string option = {};         // of the command line, if not derived from the name: "--eval-data"

  std::string option_name() const;  // "--label-smoothing"
  Json default_value() const;
};

// "an integer", "a list of strings", "adamw or lamb"
std::string kind_text(const Field& field);

// Whether the value is of the field's kind; does not check the rule.
bool has_kind(const Field& field, const Json& value);

// Throws UsageError "where: shown: expected …, got …" unless the value is of the field's kind.
void require_kind(const Field& field, const Json& value, const std::string& where, const std::string& shown);
// The same check for kind and rule.
void require_meant(const Field& field, const Json& value, const std::string& where, const std::string& shown);

// The list without the type of its struct: enough for help texts, defaults and checks.
class Fields {
 public:
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  std::size_t size() const { return list_.size(); }
  bool empty() const { return list_.empty(); }
  std::vector<std::string> names() const;
  const Field* find(const std::string& name) const;  // null: there is none

  Json defaults() const;  // an object with every key

 protected:
  // The default is the member's value in `defaults`.
  void add(Field field, const void* defaults);
  Json write(const void* object) const;
  // Copies the JSON object's values into the members; members of missing keys do not change, unknown keys are ignored.
  // Throws UsageError "where: <prefix><key>: expected …, got …" on a value of another kind.
  void assign(const Json& json, void* object, const std::string& where, const std::string& prefix) const;
  // Throws the same error on a member whose value violates its rule.
  void check_members(const void* object, const std::string& where, const std::string& prefix) const;

 private:
  std::vector<Field> list_;
};

namespace detail {

template <typename Value>
constexpr FieldKind field_kind() {
  if constexpr (std::is_same_v<Value, bool>) return FieldKind::boolean;
  if constexpr (std::is_same_v<Value, std::int64_t>) return FieldKind::integer;
  if constexpr (std::is_same_v<Value, std::uint64_t>) return FieldKind::natural;
  if constexpr (std::is_same_v<Value, std::optional<std::int64_t>>) return FieldKind::optional_integer;
  if constexpr (std::is_same_v<Value, double>) return FieldKind::number;
  if constexpr (std::is_same_v<Value, std::string>) return FieldKind::text;
  if constexpr (std::is_same_v<Value, std::vector<std::string>>) return FieldKind::texts;
  if constexpr (std::is_same_v<Value, Json>) return FieldKind::json;
}

template <typename Struct>
const Struct& default_of() {
  static const Struct kDefault{};
  return kDefault;
}

template <typename Struct, typename Value>
std::size_t offset_of(Value Struct::*member) {
  const Struct& object = default_of<Struct>();
  return static_cast<std::size_t>(reinterpret_cast<const char*>(&(object.*member)) -
                                  reinterpret_cast<const char*>(&object));
}

Field make_field(const char* name, FieldKind kind, const char* help, FieldRule rule, int mark);

}  // namespace detail

// One entry of a FieldList; members of base classes of the struct are allowed.
template <typename Struct>
struct FieldEntry {
  Field field;

  template <typename Value, typename Owner>
  requires(!std::is_enum_v<Value>)
      FieldEntry(const char* name, Value Owner::*member, const char* help, FieldRule rule = {}, int mark = 0)
      : field(detail::make_field(name, detail::field_kind<Value>(), help, std::move(rule), mark)) {
    field.offset = detail::offset_of<Struct, Value>(member);
  }

  // `words`: every value of the enum by its name in JSON.
  template <typename Enum, typename Owner>
  requires std::is_enum_v<Enum> FieldEntry(
      const char* name, Enum Owner::*member, const char* help,
      std::type_identity_t<std::initializer_list<std::pair<const char*, Enum>>> words, int mark = 0)
      : field(detail::make_field(name, FieldKind::word, help, {}, mark)) {
    static_assert(std::is_same_v<std::underlying_type_t<Enum>, int>);  // fields.cpp reads and writes it as one
    field.offset = detail::offset_of<Struct, Enum>(member);
    for (const auto& [word, value] : words) {
      field.rule.words.emplace_back(word);
      field.numbers.push_back(static_cast<int>(value));
    }
  }

  // The same key with an option on the command line that is not derived from its name.
  FieldEntry as_option(const char* option) && {
    field.option = option;
    return std::move(*this);
  }
};

template <typename Struct>
class FieldList : public Fields {
 public:
  FieldList(std::initializer_list<FieldEntry<Struct>> entries) {
    for (const FieldEntry<Struct>& entry : entries) add(entry.field, &detail::default_of<Struct>());
  }

  // An object with every key. A template, so that files that do not call it need no complete JSON type.
  template <typename Document = Json>
  Document to_json(const Struct& object) const {
    return write(&object);
  }

  // Reads the struct from a JSON object; missing keys keep their defaults, unknown keys are ignored. Throws UsageError
  // "where: <prefix><key>: expected …, got …".
  Struct read(const Json& json, const std::string& where, const std::string& prefix = "") const {
    Struct object = read_unchecked(json, where, prefix);
    check(object, where, prefix);
    return object;
  }
  // The same, but checks only kinds, not rules.
  Struct read_unchecked(const Json& json, const std::string& where, const std::string& prefix = "") const {
    Struct object{};
    assign(json, &object, where, prefix);
    return object;
  }
  void check(const Struct& object, const std::string& where, const std::string& prefix = "") const {
    check_members(&object, where, prefix);
  }
};

}  // namespace etc
