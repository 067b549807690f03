// Implementations of the cuda slots of sparse/attention.h: scratch, and the order of the kernels.
#pragma once

#include <cstdint>

#include "sparse/attention.h"
#include "sparse/cuda/register_cuda.h"

namespace etc::sparse::cuda {

// Arguments as in sparse/attention.h; every pointer is on the device, scratch has the sizes below. Calls return before
// the device has finished; device errors are reported later (late_checks.h).
void forward(const AttentionForward& args);
void backward(const AttentionBackward& args);
// Sizes follow from the tiles, so that a call can be planned before its operands exist.
std::int64_t forward_scratch_bytes(const AttentionInputs& inputs);
std::int64_t backward_scratch_bytes(const AttentionInputs& inputs);

}  // namespace etc::sparse::cuda
