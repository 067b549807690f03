// The CPU backend of the sparse operators.
#pragma once

namespace etc::sparse {

// Fills the cpu entry of every slot of long_attention.h and global_attention.h. Call once, before the operators.
void register_cpu_kernels();

}  // namespace etc::sparse
