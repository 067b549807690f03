// One operator, one slot, at most one kernel per device.
//
// A backend's explicit register_kernels() fills the slots; nothing registers itself from a static initialiser, because
// linkers drop such objects from static libraries. A thread that counts memory (counting.h) gets the kernels of
// Device::counting, whichever device it asks for.
#pragma once

#include <array>

#include "etc_core/base/counting.h"
#include "etc_core/base/device.h"
#include "etc_core/base/error.h"

namespace etc {

template <typename Signature>
class KernelSlot;

template <typename Result, typename... Args>
class KernelSlot<Result(Args...)> {
 public:
  using Function = Result (*)(Args...);
  explicit constexpr KernelSlot(const char* name) : name_(name) {}

  void fill(Device device, Function function) { kernels_[static_cast<int>(device)] = function; }

  Result operator()(Device device, Args... args) const {
    if (counting()) device = Device::counting;
    const Function function = kernels_[static_cast<int>(device)];
    if (function == nullptr) {
      fail(name_, "no {} kernel in this build ({})", device_name(device), device_info(device).build_hint);
    }
    return function(args...);
  }

 private:
  const char* name_;
  std::array<Function, kDeviceCount> kernels_{};
};

}  // namespace etc
