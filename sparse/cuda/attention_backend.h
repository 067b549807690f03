// What fills the cuda slots of sparse/attention.h: scratch, and the order of the kernels.
#pragma once

#include <cstdint>

#include "sparse/attention.h"
#include "sparse/cuda/register_cuda.h"

namespace etc::sparse::cuda {

// Arguments as in sparse/attention.h, every pointer on the device, scratch of the sizes below. Calls return before the
// device is done; errors of the device are told later (late_checks.h).
void forward(const AttentionForward& args);
void backward(const AttentionBackward& args);
// Sizes come from the tiles, so that a call may be planned before its operands are there.
std::int64_t forward_scratch_bytes(const AttentionInputs& inputs);
std::int64_t backward_scratch_bytes(const AttentionInputs& inputs);

}  // namespace etc::sparse::cuda
