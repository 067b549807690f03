// The CUDA backend of the whole model. In programs built with ETC_CUDA, and in the emulated tests.
#pragma once

namespace etc {

// Fills the cuda entry of every slot the model and its training need. Touches no device yet.
void register_cuda_backend();

}  // namespace etc
