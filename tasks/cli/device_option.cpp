#include "tasks/cli/device_option.h"

namespace etc::cli {

void add_device_option(CLI::App& command, std::string& device) {
  command
      .add_option("--device", device,
                  "where to compute: cpu; cuda: the first GPU, an error without; auto: cuda, or else cpu")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}))
      ->capture_default_str();
}

}  // namespace etc::cli
