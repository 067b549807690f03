// The CPU backend of the attention operator.
#pragma once

namespace etc::sparse {

// Fills the cpu entry of every slot of attention.h. Call once, before the operators.
void register_cpu_kernels();

// Fills the slots of forward and backward with kernels that compute nothing, to count memory (base/counting.h); those
// of the scratch sizes stay. register_cpu_kernels() takes them out again.
void register_counting_kernels();

// Whether vector kernels of the whole process stay below AVX-512 from now on, for tests and comparisons on machines
// that have it. Bits differ between instruction sets.
// Tests compare instruction sets with it; AVX-512 is the default where there is some.
void restrict_to_avx2(bool restricted);

// For tests: bf16 attention with plain C++ in place of AMX, whose bits it gives.
void use_plain_bf16_tiles(bool plain);

}  // namespace etc::sparse
