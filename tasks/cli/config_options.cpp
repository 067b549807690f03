#include "tasks/cli/config_options.h"

#include <cmath>
#include <limits>

#include "etc_core/base/error.h"
#include "tasks/registry.h"

namespace etc::cli {

namespace {

std::string default_text(const Field& key) {
  const std::string preset = preset_text(key);
  return preset.empty() ? "" : fmt::format(" [{}]", preset);
}

// What the key means and what it is when it is not given; where kinds of encoders differ, each one's.
std::string help_text(const ConfigKey& key) {
  std::string text = described(key.field) + default_text(key.field);
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

WordCount count_of(FieldKind kind) {
  if (kind == FieldKind::texts) return WordCount::any;  // --data a.h5 b.h5
  return kind == FieldKind::boolean ? WordCount::at_most_one : WordCount::one;
}

// Of a key of section task: as each task that has it declares it.
std::vector<OptionOfTask> tasks_of(const ConfigKey& key) {
  std::vector<OptionOfTask> tasks;
  for (const TaskEntry& entry : task_entries()) {
    if (const Field* own = entry.task.keys.find(key.field.name)) tasks.push_back(key_of_task(entry.name, *own));
  }
  return tasks;
}

}  // namespace

std::string type_text(const Field& field) {
  switch (field.kind) {
    case FieldKind::integer:
    case FieldKind::natural:
    case FieldKind::optional_integer:
      return "INT";
    case FieldKind::number:
      return "NUMBER";
    case FieldKind::boolean:
      return "true|false";
    case FieldKind::json:
      return "JSON";
    default:
      return field.rule.words.empty() || field.kind == FieldKind::texts
                 ? "TEXT"
                 : fmt::format("{}", fmt::join(field.rule.words, "|"));
  }
}

std::string preset_text(const Field& field) {
  const Json value = field.default_value();
  if (field.kind == FieldKind::texts) return "";
  return value.is_null() ? "none" : value.is_string() ? value.get<std::string>() : json_line(value);
}

std::string described(const Field& field) {
  constexpr double kAny = std::numeric_limits<std::int32_t>::max();  // a bound that says nothing
  const FieldRule& rule = field.rule;
  std::string range;
  if (std::isfinite(rule.least) && std::isfinite(rule.most) && rule.most < kAny) {
    range = fmt::format("{} to {}", rule.least, rule.most);
  } else {
    std::vector<std::string> bounds;
    if (std::isfinite(rule.least)) bounds.push_back(fmt::format("{} or more", rule.least));
    if (std::isfinite(rule.above)) bounds.push_back(fmt::format("above {}", rule.above));
    if (std::isfinite(rule.below)) bounds.push_back(fmt::format("below {}", rule.below));
    if (std::isfinite(rule.most) && rule.most < kAny) bounds.push_back(fmt::format("at most {}", rule.most));
    range = fmt::format("{}", fmt::join(bounds, ", "));
  }
  return range.empty() ? field.help : fmt::format("{} ({})", field.help, range);
}

OptionOfTask key_of_task(const std::string& task, const Field& field) {
  return {task, described(field), type_text(field), preset_text(field)};
}

GivenOptions add_config_options(const Command& command, const std::function<bool(const ConfigKey&)>& wanted) {
  auto given = std::make_shared<Json>(Json::object());
  for (const ConfigKey& key : config_keys()) {
    if (!wanted(key)) continue;
    const Field& field = key.field;
    const auto take = [given, &key](const std::vector<std::string>& words) {
      (*given)[key.section][key.field.name] = option_value(key.field, words);
    };
    const Option option =
        command.take_words(field.option_name(), count_of(field.kind), type_text(field), take, help_text(key))
            .group("Section " + key.section);
    if (key.section == "task" && field.name != "name") option.of_tasks(tasks_of(key));
  }
  return given;
}

}  // namespace etc::cli
