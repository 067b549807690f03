#include "etc_core/nn/register_cuda.h"

#include "etc_core/ops/register_cuda.h"
#include "sparse/register_cuda.h"

namespace etc {

void register_cuda_backend() {
  ops::register_cuda_ops();
  sparse::register_cuda_kernels();
}

}  // namespace etc
