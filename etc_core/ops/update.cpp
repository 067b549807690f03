#include "etc_core/ops/update.h"

namespace etc::ops {

constinit KernelSlot<void(UpdateBlocks, double*)> gradient_squares_kernel{"gradient_squares"};
constinit KernelSlot<void(const UpdateConstants&, UpdateBlocks, UpdateNorms*)> update_moments_kernel{"update_moments"};
constinit KernelSlot<void(const UpdateConstants&, UpdateBlocks)> update_weights_kernel{"update_weights"};

std::vector<double> gradient_squares(Device device, UpdateBlocks blocks) {
  std::vector<double> sums(blocks.size());
  if (!blocks.empty()) gradient_squares_kernel(device, blocks, sums.data());
  return sums;
}

std::vector<UpdateNorms> update_moments(Device device, const UpdateConstants& constants, UpdateBlocks blocks) {
  std::vector<UpdateNorms> norms(blocks.size());
  if (!blocks.empty()) update_moments_kernel(device, constants, blocks, norms.data());
  return norms;
}

void update_weights(Device device, const UpdateConstants& constants, UpdateBlocks blocks) {
  if (!blocks.empty()) update_weights_kernel(device, constants, blocks);
}

}  // namespace etc::ops
