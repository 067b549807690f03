// Updates of optimisers on CUDA: copies the list of blocks to the device and the sums back.
#include "etc_core/ops/update.h"

#include "etc_core/base/cuda/device_array.h"
#include "etc_core/ops/cuda/host_array.h"
#include "etc_core/ops/cuda/kernels.h"
#include "etc_core/ops/cuda/launch.h"

namespace etc::ops::cuda {

namespace {

// One pass over the blocks in one launch, whatever parameters they belong to. `sums`, unless null: [blocks, 2].
void pass(UpdatePass what, const UpdateConstants& constants, UpdateBlocks blocks, double* sums) {
  const auto count = static_cast<std::int64_t>(blocks.size());
  const OnDevice<UpdateBlock> list(blocks.data(), count);
  const std::int64_t numbers = sums == nullptr ? 0 : 2 * count;
  Bytes memory = simt::device_bytes(numbers * static_cast<std::int64_t>(sizeof(double)), Purpose::scratch);
  const Span<double> results{static_cast<double*>(memory.data()), numbers};
  launch(UpdateParams{what, constants, list.span(), results}, simt::stream());
  if (sums != nullptr) simt::copy_to_host(sums, results.data, numbers * static_cast<std::int64_t>(sizeof(double)));
}

}  // namespace

void register_update() {
  gradient_squares_kernel.fill(Device::cuda, [](UpdateBlocks blocks, double* sums) {
    std::vector<double> pairs(2 * blocks.size());  // [blocks, 2] g² and nothing
    pass(UpdatePass::squares, {}, blocks, pairs.data());
    for (std::size_t i = 0; i < blocks.size(); ++i) sums[i] = pairs[2 * i];
  });
  update_moments_kernel.fill(Device::cuda,
                             [](const UpdateConstants& constants, UpdateBlocks blocks, UpdateNorms* norms) {
                               bool adapted = false;  // otherwise no sums are needed
                               for (const UpdateBlock& block : blocks) adapted = adapted || block.adapted;
                               std::vector<double> pairs(2 * blocks.size());
                               pass(UpdatePass::moments, constants, blocks, adapted ? pairs.data() : nullptr);
                               for (std::size_t i = 0; i < blocks.size(); ++i) {
                                 norms[i] = {pairs[2 * i], pairs[2 * i + 1]};
                               }
                             });
  update_weights_kernel.fill(Device::cuda, [](const UpdateConstants& constants, UpdateBlocks blocks) {
    pass(UpdatePass::weights, constants, blocks, nullptr);
  });
}

}  // namespace etc::ops::cuda
