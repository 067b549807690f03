// Fills the kernel slots of this folder.
#pragma once

namespace etc::ops {

// Call once before the first operator (main and test programs do); calling again changes nothing.
void register_cpu_ops();

// Kernels that compute nothing, those of Device::counting (base/counting.h). Once, after register_cpu_ops().
void register_counting_ops();

}  // namespace etc::ops
