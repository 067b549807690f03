// The CUDA backend of the whole model, in programs built with ETC_CUDA and in the emulated tests.
#pragma once

#include <string>

#include "etc_core/base/backend.h"

namespace etc {

// Fills the cuda entry of every slot that the model and its training need. Does not access a device.
void register_cuda_backend();

// Also checks that there is a device and allocates the memory that the backend itself needs; used as Backend::open.
std::string open_cuda_backend();

// The complete backend, for add_backend().
Backend cuda_backend();

}  // namespace etc
