// The CUDA backend of the whole model. In programs built with ETC_CUDA, and in the emulated tests.
#pragma once

#include <string>

#include "etc_core/base/backend.h"

namespace etc {

// Fills the cuda entry of every slot the model and its training need. Touches no device.
void register_cuda_backend();

// The same, makes sure there is a device and takes the memory the backend itself needs: Backend::open.
std::string open_cuda_backend();

// All of it, for add_backend().
Backend cuda_backend();

}  // namespace etc
