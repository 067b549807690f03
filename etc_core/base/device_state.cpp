#include "etc_core/base/device_state.h"

#include <array>

#include "etc_core/base/error.h"
#include "etc_core/base/machine_share.h"

namespace etc {

namespace {

std::array<DeviceState, kDeviceCount> g_states;

const DeviceState& state_of(Device device) {
  const DeviceState& state = g_states[static_cast<std::size_t>(device)];
  if (state.wait == nullptr) fail("device", "{} has not been opened", device_name(device));
  return state;
}

}  // namespace

void register_device_state(Device device, const DeviceState& state) {
  g_states[static_cast<std::size_t>(device)] = state;
}

void wait_for(Device device) {
  if (device != Device::cpu) state_of(device).wait();
}

void wait_for_devices() {
  for (const DeviceState& state : g_states) {
    if (state.wait != nullptr) state.wait();
  }
}

std::int64_t memory_capacity(Device device) {
  if (device != Device::cpu) return state_of(device).capacity();
  return usable_memory();
}

}  // namespace etc
