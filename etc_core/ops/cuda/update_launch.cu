// Launch of the optimisers' updates: one block of threads per UpdateBlock; a large model has tens of thousands.
#include "etc_core/ops/cuda/launch.h"
#include "etc_core/ops/cuda/update_kernels.h"

namespace etc::ops::cuda {

void launch(const UpdateParams& params, void* stream) {
  simt::launch<UpdateKernel>({params.blocks.size, 1, 1, UpdateKernel::kShared}, params, stream);
}

}  // namespace etc::ops::cuda
