#include "etc_core/nn/backends.h"

#include <array>

#include "etc_core/base/cpu_features.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"  // suggestion
#include "etc_core/base/log.h"
#include "etc_core/nn/etc_encoder.h"
#include "etc_core/ops/fastest_compute.h"

namespace etc {

namespace {

std::array<OpenBackend, kDeviceCount> g_backends{};

OpenedDevice open_cuda() {
  const OpenBackend open = g_backends[static_cast<std::size_t>(Device::cuda)];
  if (open == nullptr) {
    fail("--device cuda", "this program was built without it (configure with -DETC_CUDA=ON, or use --device cpu)");
  }
  return {Device::cuda, open()};
}

}  // namespace

void add_backend(Device device, OpenBackend open) {
  g_backends[static_cast<std::size_t>(device)] = open;
}

OpenedDevice open_device(const std::string& name) {
  register_cpu_backend();
  const OpenedDevice host{Device::cpu, instruction_set()};
  if (name == "cpu") return host;
  if (name == "cuda") return open_cuda();
  if (name != "auto") {
    fail_usage("--device", "expected cpu, cuda or auto, got {}{}", name, suggestion(name, {"cpu", "cuda", "auto"}));
  }
  try {
    return open_cuda();
  } catch (const Error& error) {
    log::info("--device auto: computing on the CPU; {}", error.what());
    return host;
  }
}

bool device_offers(Device device, ComputeType type) {
  return device == Device::cpu ? cpu_offers(type) : type != ComputeType::int8;
}

ComputeType chosen_compute(const std::string& name, Device device) {
  if (name == "auto") {
    const ComputeType fastest = device == Device::cpu ? ops::fastest_compute(device) : ComputeType::bf16;
    log::info("--compute auto: {}", compute_type_name(fastest));
    return fastest;
  }
  const ComputeType type = compute_type_from_name(name).value();
  if (device != Device::cpu && !device_offers(device, type)) {
    fail_usage("--compute", "{} offers fp32 and bf16, not {}", device_name(device), name);
  }
  if (!device_offers(device, type)) {
    fail_usage("--compute",
               "this processor ({}) has no {} products: expected AMX, or AVX-512 with BF16; use fp32 or "
               "auto",
               instruction_set(), name);
  }
  return type;
}

}  // namespace etc
