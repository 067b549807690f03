#include "tasks/cli/config_options.h"

#include "etc_core/base/error.h"

namespace etc::cli {

namespace {

std::string default_text(const Field& key) {
  const Json value = key.default_value();
  if (key.kind == FieldKind::texts || value == "") return "";
  return fmt::format(" [{}]", value.is_null()     ? "none"
                              : value.is_string() ? value.get<std::string>()
                                                  : json_line(value));
}

// What the key means and what it is when it is not given; where kinds of encoders differ, each one's.
std::string help_text(const ConfigKey& key) {
  std::string text = key.field.help + default_text(key.field);
  if (key.kinds.size() == 1) return fmt::format("{}; {} only", text, key.kinds.front().kind);
  for (const KeyOfKind& other : key.kinds) {
    const bool help = other.field.help != key.field.help;
    const std::string preset = default_text(other.field);
    if (help || preset != default_text(key.field)) {
      text += fmt::format("; {}:{}{}{}", other.kind, help ? " " : "", help ? other.field.help : "", preset);
    }
  }
  return text;
}

const char* type_text(FieldKind kind) {
  switch (kind) {
    case FieldKind::integer:
    case FieldKind::natural:
    case FieldKind::optional_integer:
      return "INT";
    case FieldKind::number:
      return "NUMBER";
    case FieldKind::boolean:
      return "true|false";
    default:
      return "TEXT";
  }
}

WordCount count_of(FieldKind kind) {
  if (kind == FieldKind::texts) return WordCount::any;  // --data a.h5 b.h5
  return kind == FieldKind::boolean ? WordCount::at_most_one : WordCount::one;
}

}  // namespace

GivenOptions add_config_options(const Command& command, const std::function<bool(const ConfigKey&)>& wanted) {
  auto given = std::make_shared<Json>(Json::object());
  for (const ConfigKey& key : config_keys()) {
    if (!wanted(key)) continue;
    const Field& field = key.field;
    const auto take = [given, &key](const std::vector<std::string>& words) {
      (*given)[key.section][key.field.name] = option_value(key.field, words);
    };
    command.take_words(field.option_name(), count_of(field.kind), type_text(field.kind), take, help_text(key))
        .group("Section " + key.section);
  }
  return given;
}

}  // namespace etc::cli
