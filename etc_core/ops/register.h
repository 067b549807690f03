// Fills the kernel slots of this folder.
#pragma once

namespace etc::ops {

// Call once before the first operator (main and test programs do); calling again changes nothing.
void register_cpu_ops();

// Kernels that compute nothing in their place, to count memory (base/counting.h); register_cpu_ops() takes them out
// again.
void register_counting_ops();

}  // namespace etc::ops
