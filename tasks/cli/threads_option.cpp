#include "tasks/cli/threads_option.h"

#include "tasks/train/run_config.h"

namespace etc::cli {

void add_threads_option(const Command& command, int& threads) {
  command.option("--threads", threads, "threads to compute with [all processors]").at_least(1).at_most(kMostThreads);
}

}  // namespace etc::cli
