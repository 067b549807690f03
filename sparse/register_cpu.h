// The CPU backend of the attention operator.
#pragma once

namespace etc::sparse {

// Fills the cpu entry of every slot of attention.h. Call once, before the operators.
void register_cpu_kernels();

// Fills the slots of forward and backward with kernels that compute nothing, to count memory (base/counting.h); those
// of the scratch sizes stay. register_cpu_kernels() takes them out again.
void register_counting_kernels();

// For tests: bf16 attention with plain C++ in place of AMX, whose bits it gives.
void use_plain_bf16_tiles(bool plain);

}  // namespace etc::sparse
