#include "tasks/cli/compute_option.h"

#include "tasks/cli/option_checks.h"

namespace etc::cli {

void add_compute_option(CLI::App& command, std::string& compute) {
  command
      .add_option("--compute", compute,
                  "number type of the large products: fp32; bf16, int8: faster and smaller, rounded; auto: fp32 or "
                  "bf16, whichever this machine does faster")
      ->check(one_of({"auto", "fp32", "bf16", "int8"}))
      ->capture_default_str();
}

}  // namespace etc::cli
