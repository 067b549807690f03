// --memory-limit of the commands that run a model.
#pragma once

#include <cstdint>
#include <string>

#include "etc_core/base/device.h"
#include "tasks/cli/command.h"

namespace etc::cli {

// limit: as given, "8GB"; help: what the command does with it.
void add_memory_option(const Command& command, std::string& limit, const std::string& help);

// Bytes of the limit; 0: none was given. On the host it holds for all that looks at the memory there is, from here on
// (machine_share.h). Throws UsageError for what is no size.
std::int64_t take_memory_limit(const std::string& limit, Device device);

// Says the peak of the process on standard error.
void log_peak_memory(Device device);

}  // namespace etc::cli
