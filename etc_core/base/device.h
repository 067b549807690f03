// Where memory lies and kernels run.
//
// C++17: device code reads this header.
#pragma once

#include <known_devices.h>  // enum class Device and what is known of each, written by the build (known_devices.h.in)

namespace etc {

inline constexpr const DeviceInfo& device_info(Device device) {
  return kDevices[static_cast<int>(device)];
}

inline const char* device_name(Device device) {
  return device_info(device).name;
}

}  // namespace etc
