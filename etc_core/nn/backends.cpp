#include "etc_core/nn/backends.h"

#include <algorithm>
#include <optional>

#include "etc_core/base/backend.h"
#include "etc_core/base/cpu_features.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"  // suggestion
#include "etc_core/base/log.h"
#include "etc_core/base/words.h"
#include "etc_core/ops/fastest_compute.h"
#include "etc_core/ops/register.h"
#include "sparse/register_cpu.h"

namespace etc {

namespace {

std::vector<Device> backend_devices() {
  std::vector<Device> devices;
  for (int i = kFirstBackend; i < kDeviceCount; ++i) devices.push_back(static_cast<Device>(i));
  return devices;
}

OpenedDevice open_backend(Device device) {
  const Backend* const backend = find_backend(device);
  if (backend == nullptr || backend->open == nullptr) {
    fail(fmt::format("--device {}", device_name(device)), "this program was built without it ({}, or use --device cpu)",
         device_info(device).build_hint);
  }
  return {device, backend->open()};
}

// "fp32 and bf16"
std::string offered_types(Device device) {
  std::string text;
  for (int i = 0; i < kComputeTypes; ++i) {
    const auto type = static_cast<ComputeType>(i);
    if (device_offers(device, type)) text += (text.empty() ? "" : " and ") + std::string(compute_type_name(type));
  }
  return text;
}

}  // namespace

std::vector<std::string> device_choices() {
  std::vector<std::string> words = {device_name(Device::cpu)};
  for (const Device device : backend_devices()) words.emplace_back(device_name(device));
  words.emplace_back("auto");
  return words;
}

std::string device_help() {
  std::string text = "where to compute: cpu; ", order;
  for (const Device device : backend_devices()) {
    text += fmt::format("{}: {}; ", device_name(device), device_info(device).help);
    order += fmt::format("{}, or else ", device_name(device));
  }
  return text + "auto: " + order + "cpu";
}

void require_device_choice(const std::string& where, const std::string& name) {
  const std::vector<std::string> words = device_choices();
  if (std::find(words.begin(), words.end(), name) != words.end()) return;
  fail_usage(where, "expected {}, got {}{}", alternatives(words), name, suggestion(name, words));
}

void register_cpu_backend() {
  ops::register_cpu_ops();
  sparse::register_cpu_kernels();
}

OpenedDevice open_device(const std::string& name) {
  register_cpu_backend();
  require_device_choice("--device", name);
  const OpenedDevice host{Device::cpu, instruction_set()};
  if (name == device_name(Device::cpu)) return host;
  std::string faults;
  for (const Device device : backend_devices()) {
    if (name == device_name(device)) return open_backend(device);
    if (name != "auto") continue;
    try {
      return open_backend(device);
    } catch (const Error& error) {
      faults += fmt::format("{}{}", faults.empty() ? "" : "; ", error.what());
    }
  }
  log::info("--device auto: computing on the CPU; {}", faults);
  return host;
}

bool device_offers(Device device, ComputeType type) {
  const Backend* const backend = find_backend(device);
  return backend != nullptr && backend->offers(type);
}

ComputeType chosen_compute(const std::string& name, Device device) {
  if (name == "auto") {
    const Backend* const backend = find_backend(device);
    const ComputeType fastest =
        device == Device::cpu || backend == nullptr ? ops::fastest_compute(Device::cpu) : backend->fastest;
    log::info("--compute auto: {}", compute_type_name(fastest));
    return fastest;
  }
  const std::optional<ComputeType> named = compute_type_from_name(name);
  if (!named) fail_usage("--compute", "expected fp32, bf16, int8 or auto, got \"{}\"", name);
  const ComputeType type = *named;
  if (device_offers(device, type)) return type;
  if (device != Device::cpu) {
    fail_usage("--compute", "{} offers {}, not {}", device_name(device), offered_types(device), name);
  }
  fail_usage("--compute",
             "this processor ({}) has no {} products: expected AMX, or AVX-512 with BF16; use fp32 or "
             "auto",
             instruction_set(), name);
}

InferenceTypes chosen_types(const std::string& compute, const std::string& scores, Device device) {
  const std::optional<ScoreType> type = score_type_from_name(scores);
  if (!type) fail_usage("--scores", "expected int32 or fp16, got \"{}\"", scores);
  if (*type == ScoreType::fp16 && device != Device::cpu) {
    fail_usage("--scores", "{} carries scores in int32; fp16 is offered on the CPU", device_name(device));
  }
  return {chosen_compute(compute, device), *type};
}

}  // namespace etc
