// The CUDA backend of the dense operators. In programs built with ETC_CUDA, and in the emulated tests.
#pragma once

namespace etc::ops {

// Fills the cuda entry of every slot of this folder, and registers the device's memory. Arrays of numbers are device
// memory; what describes the batch (offsets, sample ordinals, ids, counted, target_index) lies on the host and travels
// with the call.
void register_cuda_ops();

// Takes now what the first copy and the first product would take and keep, 64 MiB in all: then it is in the ledger, and
// in every forecast.
void reserve_cuda_memory();

}  // namespace etc::ops
