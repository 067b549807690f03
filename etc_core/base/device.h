// Where memory lies and kernels run.
#pragma once

namespace etc {

enum class Device : int { cpu, cuda };
inline constexpr int kDeviceCount = 2;

inline const char* device_name(Device device) {
  return device == Device::cpu ? "cpu" : "cuda";
}

}  // namespace etc
