// Fills the kernel slots of this folder.
#pragma once

namespace etc::ops {

// Of Device::cpu and of Device::counting (base/counting.h). Call once before the first operator (main and test programs
// do); calling again changes nothing.
void register_cpu_ops();

}  // namespace etc::ops
