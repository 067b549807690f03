#include "tasks/cli/config_options.h"

#include "etc_core/base/error.h"

namespace etc::cli {

namespace {

std::string default_text(const ConfigKey& key) {
  if (key.kind == ConfigKey::Kind::texts || key.default_value == "") return "";
  return fmt::format(" [{}]", key.default_value.is_null()     ? "none"
                              : key.default_value.is_string() ? key.default_value.get<std::string>()
                                                              : json_line(key.default_value));
}

const char* type_text(ConfigKey::Kind kind) {
  switch (kind) {
    case ConfigKey::Kind::integer:
    case ConfigKey::Kind::optional_integer:
      return "INT";
    case ConfigKey::Kind::number:
      return "NUMBER";
    case ConfigKey::Kind::boolean:
      return "true|false";
    default:
      return "TEXT";
  }
}

WordCount count_of(ConfigKey::Kind kind) {
  if (kind == ConfigKey::Kind::texts) return WordCount::any;  // --data a.h5 b.h5
  return kind == ConfigKey::Kind::boolean ? WordCount::at_most_one : WordCount::one;
}

}  // namespace

GivenOptions add_config_options(const Command& command, const std::function<bool(const ConfigKey&)>& wanted) {
  auto given = std::make_shared<Json>(Json::object());
  for (const ConfigKey& key : config_keys()) {
    if (!wanted(key)) continue;
    const auto take = [given, &key](const std::vector<std::string>& words) {
      (*given)[key.section][key.key] = option_value(key, words);
    };
    command.take_words(key.option_name(), count_of(key.kind), type_text(key.kind), take, key.help + default_text(key))
        .group("Section " + key.section);
  }
  return given;
}

}  // namespace etc::cli
