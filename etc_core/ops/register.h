// Fills the kernel slots of this folder.
#pragma once

namespace etc::ops {

// Registers the kernels of Device::cpu and Device::counting (base/counting.h). Call it once before the first operator
// (main and test programs do); calling it again changes nothing.
void register_cpu_ops();

}  // namespace etc::ops
