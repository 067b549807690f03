// Fills the slot of every operator for Device::cuda. The device's memory is registered first, since kernels allocate
// from its pool.
#include "etc_core/ops/cuda/register_cuda.h"

#include "etc_core/base/cuda/runtime.h"
#include "etc_core/ops/cuda/kernels.h"
#include "etc_core/ops/cuda/product.h"

namespace etc::ops {

void register_cuda_ops() {
  simt::provide_memory();
  cuda::register_embedding();
  cuda::register_linear();
  cuda::register_pointwise();
  cuda::register_segments();
  cuda::register_top_k();
  cuda::register_update();
}

// Allocates what the first copy and the first product would otherwise allocate, so that a forecast of memory includes
// it.
void reserve_cuda_memory() {
  simt::reserve_copies();
  cuda::reserve_product_memory();
}

}  // namespace etc::ops
