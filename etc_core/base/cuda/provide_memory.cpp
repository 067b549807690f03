#include "etc_core/base/cuda/device_backend.h"
#include "etc_core/base/cuda/runtime.h"

namespace etc::simt {

namespace {

bool offers(ComputeType type) {
  return type != ComputeType::int8;
}

}  // namespace

Backend device_backend() {
  Backend backend;
  backend.device = Device::cuda;
  backend.offers = offers;
  backend.joins_in_bf16 = true;
  backend.fastest = ComputeType::bf16;
  backend.keeps_bf16 = true;
  backend.memory = {allocate, release, copy_to_device, copy_to_host, copy_within, fill_zero};
  backend.state = {wait, memory_capacity};
  return backend;
}

void provide_memory() {
  if (find_backend(Device::cuda) == nullptr) add_backend(device_backend());
  set_backend_ready(Device::cuda);
}

}  // namespace etc::simt
