#include "tasks/cli/compute_option.h"

#include "etc_core/base/cpu_features.h"
#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "etc_core/ops/fastest_compute.h"

namespace etc::cli {

void add_compute_option(CLI::App& command, std::string& compute) {
  command
      .add_option("--compute", compute,
                  "number type of the large products: fp32; bf16, int8: faster and smaller, rounded; auto: fp32 or "
                  "bf16, whichever this machine does faster")
      ->check(CLI::IsMember({"auto", "fp32", "bf16", "int8"}))
      ->capture_default_str();
}

ComputeType chosen_compute(const std::string& compute, Device device) {
  if (compute == "auto") {
    const ComputeType fastest = device == Device::cpu ? ops::fastest_compute(device) : ComputeType::bf16;
    log::info("--compute auto: {}", compute_type_name(fastest));
    return fastest;
  }
  const ComputeType type = compute_type_from_name(compute).value();
  if (device != Device::cpu && type == ComputeType::int8) {
    fail_usage("--compute", "{} offers fp32 and bf16, not int8", device_name(device));
  }
  if (device == Device::cpu && !cpu_offers(type)) {
    fail_usage("--compute", "this processor has no {} products: expected AMX, or AVX-512 with {}; use fp32 or auto",
               compute, type == ComputeType::bf16 ? "BF16" : "VNNI");
  }
  return type;
}

}  // namespace etc::cli
