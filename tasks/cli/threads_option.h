// --threads, in every command that computes.
#pragma once

#include "tasks/cli/command.h"

namespace etc::cli {

// threads: stays 0 if the option is not given, which means all processors.
void add_threads_option(const Command& command, int& threads);

}  // namespace etc::cli
