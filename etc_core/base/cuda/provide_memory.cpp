#include "etc_core/base/cuda/runtime.h"
#include "etc_core/base/device_memory.h"
#include "etc_core/base/device_state.h"

namespace etc::simt {

void provide_memory() {
  register_device_memory(Device::cuda, {allocate, release, copy_to_device, copy_to_host, copy_within, fill_zero});
  register_device_state(Device::cuda, {wait, memory_capacity});
}

}  // namespace etc::simt
