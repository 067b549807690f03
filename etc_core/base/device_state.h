// What can be asked of a device as a whole: to be done, and how much memory it has.
#pragma once

#include <cstdint>

#include "etc_core/base/device.h"

namespace etc {

// Part of a backend (backend.h).
struct DeviceState {
  void (*wait)() = nullptr;              // until everything asked for is done; Error when the device was lost
  std::int64_t (*capacity)() = nullptr;  // bytes of memory in all
};

// Until the device has done everything asked of it; at once for the host.
void wait_for(Device device);

// So for every device that was opened.
void wait_for_devices();

// Bytes of memory in all: what this process may use of the host's (machine_share.h); 0: not known.
std::int64_t memory_capacity(Device device);

}  // namespace etc
