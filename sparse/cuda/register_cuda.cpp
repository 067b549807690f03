#include "sparse/cuda/register_cuda.h"

#include "etc_core/base/cuda/runtime.h"
#include "sparse/cuda/attention_backend.h"
#include "sparse/cuda/performer_backend.h"

namespace etc::sparse {

void register_cuda_kernels() {
  // Must precede the first Buffer on the device; filling the slots needs no device.
  simt::provide_memory();
  attention_forward_slot.fill(Device::cuda, cuda::forward);
  attention_backward_slot.fill(Device::cuda, cuda::backward);
  attention_forward_scratch_slot.fill(Device::cuda, cuda::forward_scratch_bytes);
  attention_backward_scratch_slot.fill(Device::cuda, cuda::backward_scratch_bytes);
  performer_forward_slot.fill(Device::cuda, cuda::performer_forward);
  performer_backward_slot.fill(Device::cuda, cuda::performer_backward);
  performer_forward_scratch_slot.fill(Device::cuda, cuda::performer_forward_scratch_bytes);
  performer_backward_scratch_slot.fill(Device::cuda, cuda::performer_backward_scratch_bytes);
}

}  // namespace etc::sparse
