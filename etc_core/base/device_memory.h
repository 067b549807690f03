// Memory of devices other than the host: who provides it, and copies between it and the host.
//
// It is part of a backend (backend.h). Everything on one device happens in the order of the calls, so
// memory may be given back while work that uses it is still under way.
#pragma once

#include <cstdint>

#include "etc_core/base/device.h"

namespace etc {

struct DeviceMemory {
  void* (*allocate)(std::int64_t bytes) = nullptr;  // uninitialised, 256-byte aligned; Error when there is none left
  void (*release)(void* memory) = nullptr;          // does not throw
  void (*copy_in)(void* to, const void* from, std::int64_t bytes) = nullptr;      // from the host, which may go on
  void (*copy_out)(void* to, const void* from, std::int64_t bytes) = nullptr;     // to the host; waits for the device
  void (*copy_within)(void* to, const void* from, std::int64_t bytes) = nullptr;  // on the device
  void (*fill_zero)(void* memory, std::int64_t bytes) = nullptr;
};

// That of a backend that is ready. Throws Error when there is none, as for the host, whose memory needs none of this.
const DeviceMemory& device_memory(Device device);

// Copies between any two places; from or to may be null when bytes is 0.
void copy_bytes(Device to_device, void* to, Device from_device, const void* from, std::int64_t bytes);

void zero_bytes(Device device, void* memory, std::int64_t bytes);

}  // namespace etc
