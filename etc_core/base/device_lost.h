// The error of a device that has stopped working, as a class of its own so that callers can report what was saved.
#pragma once

#include "etc_core/base/error.h"

namespace etc {

// The device and its memory cannot be used any more in this process.
class DeviceLost : public Error {
 public:
  using Error::Error;
};

}  // namespace etc
