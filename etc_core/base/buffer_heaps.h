// Where buffers lie: small ones on malloc's heap, large ones in mappings of their own (large_blocks.h).
//
// The heap keeps what small buffers once took, while large ones take what they take: the base model's training step
// peaks in the update, when 40 MB of small activations are free but still the process's. So the process takes the peaks
// of both, which may be at different times.
#pragma once

#include <cstdint>

namespace etc::buffer_heaps {

// By the ledger: of one buffer, negative when it is given back.
void charge(std::int64_t bytes);
void reset_peaks();

// What the two peaks since reset_peaks() are in sum.
std::int64_t sum_of_peaks();

}  // namespace etc::buffer_heaps
