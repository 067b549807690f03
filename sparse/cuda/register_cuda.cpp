#include "sparse/register_cuda.h"

#include "sparse/cuda/kernels.h"

namespace etc::sparse {

void register_cuda_kernels() {
  cuda::register_long_attention();
  cuda::register_global_attention();
}

}  // namespace etc::sparse
