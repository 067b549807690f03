// Which number type multiplies matrices fastest on this processor: measured, since instruction sets do not tell (some
// processors with AVX-512's BF16 part multiply bf16 no faster than fp32).
#pragma once

#include "etc_core/base/compute_type.h"
#include "etc_core/base/device.h"

namespace etc::ops {

// fp32, or bf16 where a dense layer is at least a quarter faster with it. Never int8, which changes results by more
// than rounding. Takes some ten milliseconds the first time; the answer is kept for the life of the program.
ComputeType fastest_compute(Device device);

}  // namespace etc::ops
