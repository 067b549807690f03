// --compute of the commands that run a trained model.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "etc_core/base/compute_type.h"

namespace etc::cli {

inline constexpr const char* kDefaultCompute = "fp32";

void add_compute_option(CLI::App& command, std::string& compute);

// What was asked for; "auto" measures and says in the log what it took. Throws UsageError where this processor does not
// offer it. Needs registered kernels.
ComputeType chosen_compute(const std::string& compute);

}  // namespace etc::cli
