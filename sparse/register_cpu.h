// The CPU backend of the attention operator.
#pragma once

#include "etc_core/base/device.h"

namespace etc::sparse {

// Fills the cpu entry of every slot of attention.h and performer.h. Call once, before the operators.
void register_cpu_kernels();

// Fills the entries of Device::counting (base/counting.h): forward and backward compute nothing, sizes of scratch are the
// CPU's. Once, after register_cpu_kernels().
void register_counting_kernels();

// The part of cpu that is attention_statistics.h's.
void register_statistics_kernels();

// The part of both that is linear attention's: of cpu, or of counting.
void register_performer_kernels(Device device);

}  // namespace etc::sparse
