#include "tasks/cli/device_option.h"

#include "etc_core/nn/backends.h"
#include "etc_core/ops/determinism.h"

namespace etc::cli {

void add_device_option(const Command& command, std::string& device) {
  command.option("--device", device, device_help()).one_of(device_choices()).show_default();
  command
      .take_text(
          "--deterministic", [](const std::string& word) { ops::set_determinism(ops::determinism_of(word)); },
          "on a GPU, run: same bits for the same batches; strict: an example's states do not depend on its neighbours")
      .show_default("run")
      .one_of({"run", "strict"});
}

}  // namespace etc::cli
