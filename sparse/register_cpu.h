// The CPU backend of the attention operator.
#pragma once

#include "etc_core/base/device.h"

namespace etc::sparse {

// Fills the cpu entry of every slot of attention.h, attention_statistics.h and performer.h. Call once, before the
// operators.
void register_cpu_kernels();

// Fills the entries of Device::counting (base/counting.h): forward and backward compute nothing, scratch sizes are
// those of the CPU. Call once, after register_cpu_kernels().
void register_counting_kernels();

// Parts of the two functions above, for cpu or counting: attention statistics and linear attention.
void register_statistics_kernels(Device device);
void register_performer_kernels(Device device);

}  // namespace etc::sparse
