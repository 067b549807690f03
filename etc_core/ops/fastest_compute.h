// Which number type multiplies matrices fastest on this processor. It is measured because the instruction set does not
// determine it (some processors with AVX-512 BF16 multiply bf16 no faster than fp32).
#pragma once

#include "etc_core/base/compute_type.h"
#include "etc_core/base/device.h"

namespace etc::ops {

// Returns fp32, or bf16 where a dense layer runs at least 1.25 times as fast with it. Never int8, which changes results
// by more than rounding. The first call takes some ten milliseconds; the result is cached for the life of the program.
ComputeType fastest_compute(Device device);

}  // namespace etc::ops
