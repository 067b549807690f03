// The addresses of the emulated device's memory. As with a GPU, the host cannot use them: they can be read and written
// only while a kernel, a copy or a library call runs. A function that uses a tensor's pointer on the host although the
// tensor is on the device causes a segmentation fault here, as it would with a GPU.
#pragma once

#include <cstdint>

#include "etc_core/base/not_copied.h"

namespace etc::simt {

// Memory of the device, aligned to 256 bytes; null when there is no address space left.
void* take_device_memory(std::int64_t bytes);
void give_device_memory_back(void* memory);
bool is_device_memory(const void* address);

// The addresses can be used while an object of this class exists. Objects may be nested.
class DeviceAccess : NotCopied {
 public:
  DeviceAccess();
  ~DeviceAccess();
};

}  // namespace etc::simt
