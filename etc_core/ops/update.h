// The arithmetic of optimisers (AdamW, LAMB) on long lists of blocks. The optimiser (optim/optimizer.cpp) decides which
// blocks there are and in what order their sums are combined. The list of blocks lies on the host, the arrays they
// point to on the device; sums and norms are copied back to the host.
#pragma once

#include <span>
#include <vector>

#include "etc_core/base/kernel_slot.h"
#include "etc_core/ops/update_block.h"

namespace etc::ops {

using UpdateBlocks = std::span<const UpdateBlock>;

// Sum of g² of every block, in double, in an order that depends on its count alone. Only g and count are read.
std::vector<double> gradient_squares(Device device, UpdateBlocks blocks);

// m = β₁m + (1-β₁)g, v = β₂v + (1-β₂)g² with g scaled; then w -= rate·u for blocks that are not adapted (u: see
// UpdateNorms). Returns the norms of every block, zero for those not adapted.
std::vector<UpdateNorms> update_moments(Device device, const UpdateConstants& constants, UpdateBlocks blocks);

// w -= rate·u; the moments must be up to date.
void update_weights(Device device, const UpdateConstants& constants, UpdateBlocks blocks);

// The kernels use no fused multiply-adds, so apart from the order of the sums the bits are the same on every machine.
extern KernelSlot<void(UpdateBlocks, double* sums)> gradient_squares_kernel;
extern KernelSlot<void(const UpdateConstants&, UpdateBlocks, UpdateNorms*)> update_moments_kernel;
extern KernelSlot<void(const UpdateConstants&, UpdateBlocks)> update_weights_kernel;

}  // namespace etc::ops
