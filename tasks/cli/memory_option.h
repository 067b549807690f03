// --memory-limit of the commands that run a model.
#pragma once

#include <cstdint>
#include <string>

#include "etc_core/base/device.h"
#include "tasks/cli/command.h"

namespace etc::cli {

// limit: as given, "8GB"; help: what the command does with it.
void add_memory_option(const Command& command, std::string& limit, const std::string& help);

// The limit in bytes; 0: none was given. On the host it applies from now on to all code that asks for the available
// memory (machine_share.h). Throws UsageError if the text is not a size.
std::int64_t take_memory_limit(const std::string& limit, Device device);

// Prints the peak memory of the process on standard error.
void log_peak_memory(Device device);

}  // namespace etc::cli
