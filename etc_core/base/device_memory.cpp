#include "etc_core/base/device_memory.h"

#include <cstring>

#include "etc_core/base/backend.h"
#include "etc_core/base/error.h"

namespace etc {

const DeviceMemory& device_memory(Device device) {
  const Backend* const backend = find_ready_backend(device);
  if (backend == nullptr) {
    fail("memory", "no {} memory in this build ({}, or use --device cpu)", device_name(device),
         device_info(device).build_hint);
  }
  return backend->memory;
}

void copy_bytes(Device to_device, void* to, Device from_device, const void* from, std::int64_t bytes) {
  if (bytes == 0) return;
  if (to_device == Device::cpu && from_device == Device::cpu) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  } else if (from_device == Device::cpu) {
    device_memory(to_device).copy_in(to, from, bytes);
  } else if (to_device == Device::cpu) {
    device_memory(from_device).copy_out(to, from, bytes);
  } else {
    device_memory(to_device).copy_within(to, from, bytes);
  }
}

void zero_bytes(Device device, void* memory, std::int64_t bytes) {
  if (bytes == 0) return;
  if (device == Device::cpu) {
    std::memset(memory, 0, static_cast<std::size_t>(bytes));
  } else {
    device_memory(device).fill_zero(memory, bytes);
  }
}

}  // namespace etc
