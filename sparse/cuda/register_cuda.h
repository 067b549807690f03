// The CUDA backend of the attention operator. In programs built with ETC_CUDA, and in the emulated tests.
#pragma once

namespace etc::sparse {

// Fills the cuda entry of every slot of attention.h and performer.h.
void register_cuda_kernels();

}  // namespace etc::sparse
