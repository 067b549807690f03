#include "tasks/cli/config_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "etc_core/nn/encoder_config.h"
#include "tasks/registry.h"
#include "tasks/train/run_config.h"

namespace etc::cli {

namespace {

std::string default_text(const Field& key) {
  const std::string preset = preset_text(key);
  return preset.empty() ? "" : fmt::format(" [{}]", preset);
}

// "; hotpotqa: [5e-05], …": for a key of section training, the tasks with another default.
std::string training_presets(const ConfigKey& key) {
  std::string text;
  if (key.section != "training") return text;
  for (const TaskEntry& entry : task_entries()) {
    const auto own = entry.task.training.find(key.field.name);
    if (own != entry.task.training.end()) text += fmt::format("; {}: [{}]", entry.name, json_line(*own));
  }
  return text;
}

// The key's description and default; if kinds of encoders differ, one for each, and the kinds that have it if not all do.
std::string help_text(const ConfigKey& key) {
  std::string text = described(key.field) + default_text(key.field) + training_presets(key);
  for (const KeyOfKind& other : key.kinds) {
    const bool help = other.field.help != key.field.help;
    const std::string preset = default_text(other.field);
    if (help || preset != default_text(key.field)) {
      text += fmt::format("; {}:{}{}{}", other.kind, help ? " " : "", help ? other.field.help : "", preset);
    }
  }
  if (key.kinds.empty() || key.kinds.size() == model_kinds().size()) return text;
  return fmt::format("{}; {} only", text, fmt::join(key.kind_names(), ", "));
}

WordCount count_of(FieldKind kind) {
  if (kind == FieldKind::texts) return WordCount::any;  // --data a.h5 b.h5
  return kind == FieldKind::boolean ? WordCount::at_most_one : WordCount::one;
}

// For a key of section task: its declaration in each task that has it.
std::vector<OptionOfTask> tasks_of(const ConfigKey& key) {
  std::vector<OptionOfTask> tasks;
  for (const TaskEntry& entry : task_entries()) {
    if (const Field* own = entry.task.keys.find(key.field.name)) tasks.push_back(key_of_task(entry.name, *own));
  }
  return tasks;
}

using TaskNames = std::vector<std::string>;
using NamesOfText = std::vector<std::pair<std::string, TaskNames>>;  // ordered by the first occurrence of the texts

TaskNames& names_of(NamesOfText& texts, const std::string& text) {
  const auto there = std::find_if(texts.begin(), texts.end(), [&](const auto& of) { return of.first == text; });
  return there != texts.end() ? there->second : texts.emplace_back(text, TaskNames{}).second;
}

// " [430 (wikihop), 256 (hotpotqa)]": the defaults of the tasks whose text for the option is `help`. The tasks' names
// are given if the defaults differ, or if `named` is set.
std::string presets_of_tasks(const std::vector<OptionOfTask>& tasks, const std::string& help, bool named) {
  NamesOfText presets;
  for (const OptionOfTask& task : tasks) {
    if (task.help == help) names_of(presets, task.preset).push_back(task.task);
  }
  named = named || presets.size() > 1;
  std::vector<std::string> told;
  for (const auto& [preset, names] : presets) {
    const std::string told_names = named ? fmt::format("{}", fmt::join(names, ", ")) : "";
    if (preset.empty() || told_names.empty()) {
      told.push_back(preset + told_names);
    } else {
      told.push_back(fmt::format("{} ({})", preset, told_names));
    }
  }
  const std::string list = fmt::format("{}", fmt::join(told, ", "));
  return list.empty() ? "" : fmt::format(" [{}]", list);
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
  constexpr double kAny = std::numeric_limits<std::int32_t>::max();  // an upper bound this large is not shown
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

std::string help_of_tasks(const std::vector<OptionOfTask>& tasks) {
  NamesOfText helps;
  for (const OptionOfTask& task : tasks) names_of(helps, task.help).push_back(task.task);
  if (helps.size() == 1) {
    const std::string& help = helps.front().first;
    return help + presets_of_tasks(tasks, help, tasks.size() < task_entries().size());
  }
  std::vector<std::string> told;
  for (const auto& [help, names] : helps)
    told.push_back(fmt::format("{}: {}{}", fmt::join(names, ", "), help, presets_of_tasks(tasks, help, false)));
  return fmt::format("{}", fmt::join(told, "; "));
}

GivenOptions add_config_options(const Command& command, const std::function<bool(const ConfigKey&)>& wanted) {
  auto given = std::make_shared<Json>(Json::object());
  for (const ConfigKey& key : config_keys()) {
    if (!wanted(key)) continue;
    const Field& field = key.field;
    const auto take = [given, &key](const std::vector<std::string>& words) {
      (*given)[key.section][key.field.name] = option_value(key.field, words);
    };
    const std::vector<OptionOfTask> tasks =
        key.section == "task" && field.name != "name" ? tasks_of(key) : std::vector<OptionOfTask>{};
    const std::string help = tasks.empty() ? help_text(key) : help_of_tasks(tasks);
    const Option option = command.take_words(field.option_name(), count_of(field.kind), type_text(field), take, help)
                              .group("Section " + key.section);
    if (!tasks.empty()) option.of_tasks(tasks);
  }
  return given;
}

}  // namespace etc::cli
