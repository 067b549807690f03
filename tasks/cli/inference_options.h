// The options of the commands that run a trained model: device, number types, memory, and which data are accepted.
#pragma once

#include <string>

#include "etc_core/base/json_fwd.h"
#include "tasks/cli/compute_option.h"
#include "tasks/cli/device_option.h"
#include "tasks/cli/memory_option.h"
#include "tasks/cli/profile_option.h"
#include "tasks/task.h"

namespace etc::cli {

struct InferenceOptions {
  std::string compute = kDefaultCompute, scores = kDefaultScores;
  std::string device = kDefaultDevice;
  std::string memory_limit;
  int threads = 0;  // 0: all processors
  bool allow_incomplete = false;
  ProfileOption profile;
};

// options must outlive the command's run.
void add_inference_options(const Command& command, InferenceOptions& options);

// Throws UsageError unless the model's section task names this task; empty: any.
void require_task(const char* where, const std::string& task, const Json& task_section);

// Throws UsageError for a given key of section task that has no effect for this model.
void refuse_unread_keys(const char* where, const Json& given, const Task& task);

}  // namespace etc::cli
