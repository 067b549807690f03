// Every key of the run configuration as an option of a command.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "etc_core/base/fields.h"
#include "etc_core/base/json_fwd.h"
#include "tasks/cli/command.h"
#include "tasks/train/config_keys.h"

namespace etc::cli {

// The values given on the command line, as {section: {key: value}}; filled while the command line is parsed.
using GivenOptions = std::shared_ptr<Json>;

// The type of a key's values in --help: "INT", "NUMBER", "true|false", "span|bio", "TEXT".
std::string type_text(const Field& field);
// The default of a key: "4096"; "none" if it is null.
std::string preset_text(const Field& field);

// The description of a key, and the range of its numbers if it has one: "passes over the data (above 0)".
std::string described(const Field& field);

// The text of `etc <command> TASK --help` for a task's key.
OptionOfTask key_of_task(const std::string& task, const Field& field);

// The text of `etc <command> --help` for an option that several tasks have: each description once, and the defaults,
// with the tasks' names if the defaults differ or not every task has the option: "… [430 (wikihop), 256 (hotpotqa)]".
std::string help_of_tasks(const std::vector<OptionOfTask>& tasks);

// Declares --key-with-dashes for every key that `wanted` accepts, grouped by section in --help.
GivenOptions add_config_options(const Command& command, const std::function<bool(const ConfigKey&)>& wanted);

}  // namespace etc::cli
