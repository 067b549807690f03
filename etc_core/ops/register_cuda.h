// The CUDA backend of the dense operators. In programs built with ETC_CUDA, and in the emulated tests.
#pragma once

namespace etc::ops {

// Fills the cuda entry of the slots of activation, cross_entropy, dropout_add, elementwise and layer_norm. Arrays of
// numbers are device memory; what describes the batch (offsets, sample ordinals, counted, target_index) lies on the
// host and travels with the call.
void register_cuda_ops();

// The same for embedding and its backward, apart because it needs Thrust; ids lie on the host.
void register_cuda_embedding();

}  // namespace etc::ops
