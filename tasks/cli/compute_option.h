// --compute and --scores of the commands that run a trained model; chosen_types (nn/backends.h) interprets their
// values.
#pragma once

#include <string>

#include "tasks/cli/command.h"

namespace etc::cli {

inline constexpr const char* kDefaultCompute = "fp32";

void add_compute_option(const Command& command, std::string& compute);

// --scores of the commands that run an encoder.
inline constexpr const char* kDefaultScores = "int32";

void add_score_option(const Command& command, std::string& scores);

}  // namespace etc::cli
