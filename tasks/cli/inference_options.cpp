#include "tasks/cli/inference_options.h"

#include "tasks/train/run_config.h"

namespace etc::cli {

void add_inference_options(const Command& command, InferenceOptions& options) {
  add_compute_option(command, options.compute);
  add_profile_option(command, options.profile);
  add_device_option(command, options.device);
  // Without the flag such data are refused (open_dataset).
  command.flag("--allow-incomplete", options.allow_incomplete, kAllowIncompleteHelp);
  add_memory_option(command, options.memory_limit,
                    "choose how many tokens are in memory at a time, with the same results");
  command.option("--threads", options.threads, "threads to compute with [all processors]").at_least(1);
}

}  // namespace etc::cli
