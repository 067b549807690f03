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

// Declares --key-with-dashes for every key that `wanted` accepts, grouped by section in --help.
GivenOptions add_config_options(const Command& command, const std::function<bool(const ConfigKey&)>& wanted);

}  // namespace etc::cli
