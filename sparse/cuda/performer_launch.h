// Launches of linear attention's kernels as plain functions, like launch.h.
#pragma once

#include <cstdint>

#include "sparse/cuda/performer_params.h"

namespace etc::sparse::cuda {

// Floats of one task's workspace.
std::int64_t performer_workspace_floats(const PerformerSizesView& sizes);

// Launch all kernels of a direction in order.
void launch_performer_forward(const PerformerParams& params, void* stream);
void launch_performer_backward(const PerformerParams& params, void* stream);

}  // namespace etc::sparse::cuda
