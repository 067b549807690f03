// --compute of the commands that run a trained model; chosen_compute (nn/backends.h) says what its words mean.
#pragma once

#include <string>

#include "tasks/cli/command.h"

namespace etc::cli {

inline constexpr const char* kDefaultCompute = "fp32";

void add_compute_option(const Command& command, std::string& compute);

}  // namespace etc::cli
