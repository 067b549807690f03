// --allow-incomplete of the commands that read prepared data without a run's configuration, where it is a key.
#pragma once

#include "tasks/cli/command.h"
#include "tasks/train/run_config.h"

namespace etc::cli {

// Without the flag such data are refused (open_dataset).
inline void add_incomplete_option(const Command& command, bool& allow_incomplete) {
  command.flag("--allow-incomplete", allow_incomplete, kAllowIncompleteHelp);
}

}  // namespace etc::cli
