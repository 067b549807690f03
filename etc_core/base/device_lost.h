// The error of a device that has stopped working, for those who can say what is left of their work.
#pragma once

#include "etc_core/base/error.h"

namespace etc {

// Nothing more can be had of the device in this process, its memory included.
class DeviceLost : public Error {
 public:
  using Error::Error;
};

}  // namespace etc
