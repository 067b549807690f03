// The CUDA backend of the sparse operators. In programs built with ETC_CUDA, and in the emulated tests.
#pragma once

namespace etc::sparse {

// Fills the cuda entry of every slot of long_attention.h and global_attention.h.
void register_cuda_kernels();

}  // namespace etc::sparse
