// The part of the CUDA backend (base/backend.h) that needs no kernels.
#pragma once

#include "etc_core/base/backend.h"

namespace etc::simt {

// All but open.
Backend device_backend();

}  // namespace etc::simt
