#include "tasks/cli/compute_option.h"

namespace etc::cli {

void add_compute_option(const Command& command, std::string& compute) {
  command
      .option("--compute", compute,
              "number type of the large products: fp32; bf16, int8: faster and smaller, rounded; auto: fp32 or bf16, "
              "whichever is faster on this machine")
      .one_of({"auto", "fp32", "bf16", "int8"})
      .show_default();
}

void add_score_option(const Command& command, std::string& scores) {
  command
      .option("--scores", scores,
              "number type of the scores that residual attention carries: int32, exact sums; fp16: half their memory, "
              "rounded (CPU)")
      .one_of({"int32", "fp16"})
      .show_default();
}

}  // namespace etc::cli
