// The arithmetic of optimisers (AdamW, LAMB) on long lists of blocks; which blocks there are, and in what order their
// sums are combined, is the optimiser's (optim/optimizer.cpp). The list of blocks lies on the host, what they point to on
// the device; sums and norms come back to the host.
#pragma once

#include <span>
#include <vector>

#include "etc_core/base/kernel_slot.h"
#include "etc_core/ops/update_block.h"

namespace etc::ops {

using UpdateBlocks = std::span<const UpdateBlock>;

// Sum of g² of every block, in double, in an order that depends on its count alone. Only g and count are looked at.
std::vector<double> gradient_squares(Device device, UpdateBlocks blocks);

// m = β₁m + (1-β₁)g, v = β₂v + (1-β₂)g² with g scaled; then w -= rate·u of blocks that are not adapted; u: UpdateBlock.
// Returns the norms of every block, zero for those not adapted.
std::vector<UpdateNorms> update_moments(Device device, const UpdateConstants& constants, UpdateBlocks blocks);

// w -= rate·u, moments being up to date.
void update_weights(Device device, const UpdateConstants& constants, UpdateBlocks blocks);

// Without fused multiply-adds: the same bits on every machine, but for the order of the sums.
extern KernelSlot<void(UpdateBlocks, double* sums)> gradient_squares_kernel;
extern KernelSlot<void(const UpdateConstants&, UpdateBlocks, UpdateNorms*)> update_moments_kernel;
extern KernelSlot<void(const UpdateConstants&, UpdateBlocks)> update_weights_kernel;

}  // namespace etc::ops
