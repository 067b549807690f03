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

}  // namespace

GivenOptions add_config_options(CLI::App& command, const std::function<bool(const ConfigKey&)>& wanted) {
  auto given = std::make_shared<Json>(Json::object());
  for (const ConfigKey& key : config_keys()) {
    if (!wanted(key)) continue;
    const auto take = [given, &key](const CLI::results_t& words) {
      std::vector<std::string> spelled;
      for (const std::string& word : words) {
        if (!word.empty()) spelled.push_back(word);
      }
      (*given)[key.section][key.key] = option_value(key, spelled);
      return true;
    };
    CLI::Option* option = command.add_option(key.option_name(), take, key.help + default_text(key));
    option->type_name(type_text(key.kind))->group("Section " + key.section);
    if (key.kind == ConfigKey::Kind::texts) {
      option->expected(1, CLI::detail::expected_max_vector_size)->allow_extra_args();  // --data a.h5 b.h5
    } else if (key.kind == ConfigKey::Kind::boolean) {
      option->expected(0, 1);
    } else {
      option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::Throw);
    }
  }
  return given;
}

}  // namespace etc::cli
