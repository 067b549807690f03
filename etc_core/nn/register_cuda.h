// The CUDA backend of the whole model. In programs built with ETC_CUDA, and in the emulated tests.
#pragma once

#include <string>

namespace etc {

// Fills the cuda entry of every slot the model and its training need. Touches no device.
void register_cuda_backend();

// The same, makes sure there is a device and takes the memory the backend itself needs: the OpenBackend of
// nn/backends.h.
std::string open_cuda_backend();

}  // namespace etc
