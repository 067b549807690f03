#include "sparse/register_cuda.h"

#include "etc_core/base/cuda/runtime.h"
#include "sparse/cuda/kernels.h"

namespace etc::sparse {

void register_cuda_kernels() {
  simt::provide_memory();
  cuda::register_long_attention();
  cuda::register_global_attention();
}

}  // namespace etc::sparse
