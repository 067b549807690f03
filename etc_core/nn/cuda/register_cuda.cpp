#include "etc_core/nn/cuda/register_cuda.h"

#include "etc_core/base/cuda/device_backend.h"
#include "etc_core/base/cuda/runtime.h"
#include "etc_core/ops/cuda/register_cuda.h"
#include "sparse/cuda/register_cuda.h"

namespace etc {

void register_cuda_backend() {
  ops::register_cuda_ops();
  sparse::register_cuda_kernels();
}

std::string open_cuda_backend() {
  // First, because it throws if there is no device: a registered backend is synchronised later and must not fail then.
  const std::string description = simt::device_description();
  register_cuda_backend();
  ops::reserve_cuda_memory();
  return description;
}

Backend cuda_backend() {
  Backend backend = simt::device_backend();
  backend.open = open_cuda_backend;
  return backend;
}

}  // namespace etc
