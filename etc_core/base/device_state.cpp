#include "etc_core/base/device_state.h"

#include <unistd.h>

#include <array>

#include "etc_core/base/error.h"

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
  const long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? static_cast<std::int64_t>(pages) * size : 0;
}

}  // namespace etc
