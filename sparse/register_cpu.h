// The CPU backend of the attention operator.
#pragma once

namespace etc::sparse {

// Fills the cpu entry of every slot of attention.h. Call once, before the operators.
void register_cpu_kernels();

// Fills the entries of Device::counting (base/counting.h): forward and backward compute nothing, sizes of scratch are the
// CPU's. Once, after register_cpu_kernels().
void register_counting_kernels();

}  // namespace etc::sparse
