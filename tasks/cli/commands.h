// The sub-commands of the program. Each lives in <name>_command.cpp: it declares its options once (name, default, help)
// and runs; main.cpp lists them. Results go to stdout, messages and progress to stderr.
#pragma once

#include <CLI/CLI.hpp>

namespace etc::cli {}  // namespace etc::cli
