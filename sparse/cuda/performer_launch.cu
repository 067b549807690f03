// Launches of the kernels of linear attention.
#include "sparse/cuda/performer_launch.h"

#include "sparse/cuda/performer_backward.h"
#include "sparse/cuda/performer_forward.h"

namespace etc::sparse::cuda {

namespace {

// One block per task or head.
template <typename Kernel>
void launch_each(std::int64_t count, const PerformerParams& params, void* stream) {
  simt::launch<Kernel>({count, 1, 1, kPerformerShared}, params, stream);
}

void launch_turn(const PerformerParams& params, void* stream) {
  launch_each<TurnKernel>(TurnKernel::blocks(params.sizes), params, stream);
}

}  // namespace

std::int64_t performer_workspace_floats(const PerformerSizesView& sizes) {
  return PerformerWorkspace::take(sizes, {}, 0).floats;
}

void launch_performer_forward(const PerformerParams& params, void* stream) {
  launch_turn(params, stream);
  const std::int64_t keys = params.key_tasks.size, heads = params.heads.size;
  if (params.sizes.stabilised) launch_each<LargestKeyKernel>(keys, params, stream);
  launch_each<HeadMaximumKernel>(heads, params, stream);
  launch_each<KeySumKernel>(keys, params, stream);
  launch_each<HeadSumKernel>(heads, params, stream);
  launch_each<AttendKernel>(params.query_tasks.size, params, stream);
}

void launch_performer_backward(const PerformerParams& params, void* stream) {
  launch_turn(params, stream);
  launch_each<QueryGradientsKernel>(params.query_tasks.size, params, stream);
  launch_each<SlotSumKernel>(params.heads.size, params, stream);
  launch_each<KeyGradientsKernel>(params.key_tasks.size, params, stream);
  if (params.sizes.stabilised) launch_each<LargestGradientKernel>(params.heads.size, params, stream);
}

}  // namespace etc::sparse::cuda
