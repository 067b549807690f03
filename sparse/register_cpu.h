// The CPU backend of the attention operator.
#pragma once

#include "etc_core/base/device.h"

namespace etc::sparse {

// Fills the cpu entry of every slot of attention.h and performer.h. Call once, before the operators.
void register_cpu_kernels();

// Fills the entries of Device::counting (base/counting.h): forward and backward compute nothing, sizes of scratch are the
// CPU's. Once, after register_cpu_kernels().
void register_counting_kernels();

// The parts of both, of cpu or of counting: attention_statistics.h's, and linear attention's.
void register_statistics_kernels(Device device);
void register_performer_kernels(Device device);

}  // namespace etc::sparse
