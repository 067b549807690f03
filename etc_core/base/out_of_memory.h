// The error of memory that does not suffice, for those who can say what would fit.
#pragma once

#include "etc_core/base/error.h"

namespace etc {

// Memory of the host or of a device does not suffice; the message has the ledger's table.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

}  // namespace etc
