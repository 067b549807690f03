// Every key of the run configuration as an option of a command.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "etc_core/base/json.h"
#include "tasks/cli/command.h"
#include "tasks/train/run_config.h"

namespace etc::cli {

// What was given on the command line, as {section: {key: value}}; filled while the command line is parsed.
using GivenOptions = std::shared_ptr<Json>;

// How --help shows a key's values: "INT", "NUMBER", "true|false", "span|bio", "TEXT".
std::string type_text(const Field& field);
// The value a key has when it is not given: "4096"; "none" where that is null.
std::string preset_text(const Field& field);

// What a key means, and the range of its numbers where it has one: "passes over the data (above 0)".
std::string described(const Field& field);

// What `etc <command> TASK --help` says of a task's key.
OptionOfTask key_of_task(const std::string& task, const Field& field);

// What `etc <command> --help` says of an option that several tasks have: each meaning once, and the values it has when
// it is not given, with the tasks' names where they differ or not every task has it: "… [430 (wikihop), 256 (hotpotqa)]".
std::string help_of_tasks(const std::vector<OptionOfTask>& tasks);

// Declares --key-with-dashes for every key that `wanted` accepts, grouped by section in --help.
GivenOptions add_config_options(const Command& command, const std::function<bool(const ConfigKey&)>& wanted);

}  // namespace etc::cli
