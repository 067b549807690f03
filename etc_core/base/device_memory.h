// Memory of devices other than the host: allocation, and copies between device and host.
//
// It is part of a backend (backend.h). Everything on one device is executed in the order of the calls, so memory may be
// released while work that uses it is still queued.
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

// The functions of a ready backend. Throws Error when there is none, and for the host, whose memory does not need them.
const DeviceMemory& device_memory(Device device);

// Copies between any two places; from or to may be null when bytes is 0.
void copy_bytes(Device to_device, void* to, Device from_device, const void* from, std::int64_t bytes);

void zero_bytes(Device device, void* memory, std::int64_t bytes);

}  // namespace etc
