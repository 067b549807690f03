// The options of the commands that run a trained model: where and how it computes, and which data it takes.
#pragma once

#include <string>

#include "tasks/cli/compute_option.h"
#include "tasks/cli/device_option.h"
#include "tasks/cli/memory_option.h"
#include "tasks/cli/profile_option.h"

namespace etc::cli {

struct InferenceOptions {
  std::string compute = kDefaultCompute;
  std::string device = kDefaultDevice;
  std::string memory_limit;
  int threads = 0;  // 0: all processors
  bool allow_incomplete = false;
  ProfileOption profile;
};

// options outlives the command's run.
void add_inference_options(const Command& command, InferenceOptions& options);

}  // namespace etc::cli
