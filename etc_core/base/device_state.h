// Operations on a device as a whole: waiting until it is idle, and its memory capacity.
#pragma once

#include <cstdint>

#include "etc_core/base/device.h"

namespace etc {

// Part of a backend (backend.h).
struct DeviceState {
  void (*wait)() = nullptr;              // until all queued work is done; Error when the device was lost
  std::int64_t (*capacity)() = nullptr;  // bytes of memory in all
};

// Waits until the device has done all queued work; returns at once for the host.
void wait_for(Device device);

// Waits for every device that was opened.
void wait_for_devices();

// Total bytes of memory; for the host, the part that this process may use (machine_share.h); 0: not known.
std::int64_t memory_capacity(Device device);

}  // namespace etc
