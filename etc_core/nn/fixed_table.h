// A table of numbers that is not trained, such as sinusoids: computed on the host and copied once to the device that
// needs it.
#pragma once

#include <utility>

#include "etc_core/tensor/tensor.h"

namespace etc {

class FixedTable {
 public:
  FixedTable() = default;  // none
  explicit FixedTable(Tensor made) : made_(std::move(made)) {}

  explicit operator bool() const { return static_cast<bool>(made_); }

  // No lock, since only one thread computes on a device.
  Tensor on(Device device) const {
    if (made_.device() == device) return made_;
    if (!copy_ || copy_.device() != device) copy_ = made_.to(device);
    return copy_;
  }

 private:
  Tensor made_;
  mutable Tensor copy_;  // on another device
};

}  // namespace etc
