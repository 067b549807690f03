#include "tasks/cli/device_option.h"

#include "etc_core/nn/backends.h"
#include "etc_core/ops/determinism.h"
#include "tasks/cli/option_checks.h"

namespace etc::cli {

void add_device_option(CLI::App& command, std::string& device) {
  command.add_option("--device", device, device_help())->check(one_of(device_choices()))->capture_default_str();
  command
      .add_option_function<std::string>(
          "--deterministic", [](const std::string& word) { ops::set_determinism(ops::determinism_of(word)); },
          "on a GPU, run: same bits for the same batches; strict: an example's states do not depend on its neighbours")
      ->default_str("run")
      ->check(one_of({"run", "strict"}));
}

}  // namespace etc::cli
