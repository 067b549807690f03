// Fills the slot of every operator for Device::cuda, memory first: what the kernels take comes from the device's pool.
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

// What would otherwise be taken by the first copy and the first product: here, so that a forecast counts it.
void reserve_cuda_memory() {
  simt::reserve_copies();
  cuda::reserve_product_memory();
}

}  // namespace etc::ops
