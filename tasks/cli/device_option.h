// --device and --deterministic of the commands that run a model.
#pragma once

#include <string>

#include "tasks/cli/command.h"

namespace etc::cli {

inline constexpr const char* kDefaultDevice = "cpu";

// What it names is opened by open_device (nn/backends.h).
// Adds --deterministic as well, which takes effect as it is read (ops/determinism.h).
void add_device_option(const Command& command, std::string& device);

// Adds the backends this program was built with (nn/backends.h); written by the build.
void add_backends();

}  // namespace etc::cli
