// --allow-incomplete of the commands that read prepared data without a run's configuration, where it is a key.
#pragma once

#include <CLI/CLI.hpp>

#include "tasks/train/run_config.h"

namespace etc::cli {

// Without the flag such data are refused (open_dataset).
inline void add_incomplete_option(CLI::App& command, bool& allow_incomplete) {
  command.add_flag("--allow-incomplete", allow_incomplete, kAllowIncompleteHelp);
}

}  // namespace etc::cli
