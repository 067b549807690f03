// The CUDA backend of the dense operators, in programs built with ETC_CUDA and in the emulated tests.
#pragma once

namespace etc::ops {

// Fills the cuda entry of every slot of this folder, and registers the device's memory. Arrays of numbers are in device
// memory; arrays that describe the batch (offsets, sample ordinals, ids, counted, target_index) are on the host and are
// copied with the call.
void register_cuda_ops();

// Allocates in advance the memory that the first copy and the first product would allocate and keep, 64 MiB in all, so
// that it is in the ledger and in every forecast.
void reserve_cuda_memory();

}  // namespace etc::ops
