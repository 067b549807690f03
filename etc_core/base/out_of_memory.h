// The error of insufficient memory, as a class of its own so that callers can say what would fit.
#pragma once

#include "etc_core/base/error.h"

namespace etc {

// Memory of the host or of a device does not suffice; the message has the ledger's table.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

}  // namespace etc
