#include "etc_core/nn/register_cuda.h"

#include "etc_core/base/cuda/runtime.h"
#include "etc_core/ops/register_cuda.h"
#include "sparse/register_cuda.h"

namespace etc {

void register_cuda_backend() {
  ops::register_cuda_ops();
  sparse::register_cuda_kernels();
}

std::string open_cuda_backend() {
  register_cuda_backend();
  return simt::device_description();
}

}  // namespace etc
