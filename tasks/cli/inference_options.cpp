#include "tasks/cli/inference_options.h"

#include "etc_core/base/error.h"
#include "tasks/cli/threads_option.h"
#include "tasks/registry.h"
#include "tasks/train/run_config.h"

namespace etc::cli {

void add_inference_options(const Command& command, InferenceOptions& options) {
  add_compute_option(command, options.compute);
  add_score_option(command, options.scores);
  add_profile_option(command, options.profile);
  add_device_option(command, options.device);
  // Without the flag incomplete data are refused (open_dataset).
  command.flag("--allow-incomplete", options.allow_incomplete, kAllowIncompleteHelp);
  add_memory_option(command, options.memory_limit,
                    "choose how many tokens are in memory at a time, with the same results");
  add_threads_option(command, options.threads);
}

void require_task(const char* where, const std::string& task, const Json& task_section) {
  if (task.empty() || task == task_name(task_section)) return;
  fail_usage(where, "--task {}: the model is one of {}", task, task_name(task_section));
}

void refuse_unread_keys(const char* where, const Json& given, const Task& task) {
  if (given.contains("null_score_diff_threshold") && !task.writes_null_odds()) {
    fail_usage(where, "--null-score-diff-threshold: this model always answers (squad with version_2 may not)");
  }
  if (given.contains("mismatched") && !task.submission_name().starts_with("MNLI")) {
    fail_usage(where, "--mismatched: this model's data set has no mismatched rows (glue's mnli has)");
  }
}

}  // namespace etc::cli
