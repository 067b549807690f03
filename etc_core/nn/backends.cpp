#include "etc_core/nn/backends.h"

#include <array>

#include "etc_core/base/cpu_features.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"  // suggestion
#include "etc_core/base/log.h"
#include "etc_core/nn/etc_encoder.h"

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

}  // namespace etc
