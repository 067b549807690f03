#include "etc_core/base/device_state.h"

#include "etc_core/base/backend.h"
#include "etc_core/base/error.h"
#include "etc_core/base/machine_share.h"

namespace etc {

namespace {

const DeviceState& state_of(Device device) {
  const Backend* const backend = find_ready_backend(device);
  if (backend == nullptr) fail("device", "{} has not been opened", device_name(device));
  return backend->state;
}

}  // namespace

void wait_for(Device device) {
  if (device != Device::cpu) state_of(device).wait();
}

void wait_for_devices() {
  for (int i = kFirstBackend; i < kDeviceCount; ++i) {
    if (const Backend* const backend = find_ready_backend(static_cast<Device>(i))) backend->state.wait();
  }
}

std::int64_t memory_capacity(Device device) {
  if (device != Device::cpu) return state_of(device).capacity();
  return usable_memory();
}

}  // namespace etc
