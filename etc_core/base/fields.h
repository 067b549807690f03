// Keys of a struct of options, each declared once: name, member, help, and the values that are meant.
//
//   struct Options { double label_smoothing = 0; };
//   const FieldList<Options> kFields{{"label_smoothing", &Options::label_smoothing, "…", {.least = 0, .below = 1}}};
//
// From the list come the defaults (those the struct itself has), reading with checks, writing, and what the command
// line and --help say. Relations between members are not its matter: whoever reads the struct checks those.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "etc_core/base/json_fwd.h"

namespace etc {

// natural: uint64; word: an enum, in JSON by its name; json: any value, checked by whoever reads it.
enum class FieldKind { boolean, integer, natural, optional_integer, number, text, texts, word, json };

// Which values of the kind are meant. Numbers are always finite.
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
  int mark = 0;                    // what else the list's owner has to say of a key, in numbers of its own
  std::vector<int> numbers = {};   // word: the enum's value of each of rule.words
  std::size_t offset = 0;          // of the member in the struct
  const void* defaults = nullptr;  // a struct with the members' defaults
  std::string option = {};         // of the command line, where it is not the name's: "--eval-data"

  std::string option_name() const;  // "--label-smoothing"
  Json default_value() const;
};

// "an integer", "a list of strings", "adamw or lamb"
std::string kind_text(const Field& field);

// Whether the value is of the field's kind. Says nothing of its rule.
bool has_kind(const Field& field, const Json& value);

// Throws UsageError "where: shown: expected …, got …" unless the value is of the field's kind.
void require_kind(const Field& field, const Json& value, const std::string& where, const std::string& shown);
// The same for kind and rule.
void require_meant(const Field& field, const Json& value, const std::string& where, const std::string& shown);

// The list without its struct's type: what help texts, defaults and checks need.
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
  // Puts the object's values into the members; keys it lacks leave their member as it is, other keys are not looked at.
  // Throws UsageError "where: <prefix><key>: expected …, got …" on a value of another kind.
  void assign(const Json& json, void* object, const std::string& where, const std::string& prefix) const;
  // The same error on a member whose value its rule does not admit.
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

// One entry of a FieldList; members of the struct's bases are its own, too.
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

  // The same key with another option on the command line than the name's.
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

  // An object with every key. A template, so that the type is looked at where it is called.
  template <typename Document = Json>
  Document to_json(const Struct& object) const {
    return write(&object);
  }

  // The struct of a JSON object; keys it lacks have their defaults, other keys are not looked at. Throws UsageError
  // "where: <prefix><key>: expected …, got …".
  Struct read(const Json& json, const std::string& where, const std::string& prefix = "") const {
    Struct object = read_unchecked(json, where, prefix);
    check(object, where, prefix);
    return object;
  }
  // The same, but for the rules: only kinds are checked.
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
