// What fills the cuda slots of sparse/attention.h: scratch, and the order of the kernels.
#pragma once

#include <cstdint>

#include "sparse/attention.h"
#include "sparse/register_cuda.h"

namespace etc::sparse::cuda {

void forward(const AttentionForward& args);
void backward(const AttentionBackward& args);
std::int64_t forward_scratch_bytes(const AttentionInputs& inputs);
std::int64_t backward_scratch_bytes(const AttentionInputs& inputs);

}  // namespace etc::sparse::cuda
