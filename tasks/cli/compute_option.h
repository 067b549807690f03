// --compute of the commands that run a trained model.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "etc_core/base/compute_type.h"
#include "etc_core/base/device.h"

namespace etc::cli {

inline constexpr const char* kDefaultCompute = "fp32";

void add_compute_option(CLI::App& command, std::string& compute);

// What was asked for; "auto" measures (cuda: takes bf16) and says in the log what it took. Throws UsageError where the
// device does not offer it. Needs registered kernels.
ComputeType chosen_compute(const std::string& compute, Device device);

}  // namespace etc::cli
