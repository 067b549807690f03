// Implementations of the cuda slots of sparse/performer.h: scratch, lists of tasks, and the order of the kernels.
#pragma once

#include <cstdint>

#include "sparse/performer.h"

namespace etc::sparse::cuda {

// Arguments as in sparse/performer.h; rows, projection, state and scratch are on the device, offsets on the host.
void performer_forward(const PerformerForward& args);
void performer_backward(const PerformerBackward& args);
std::int64_t performer_forward_scratch_bytes(const PerformerInputs& inputs);
std::int64_t performer_backward_scratch_bytes(const PerformerInputs& inputs);

}  // namespace etc::sparse::cuda
