// The addresses of the emulated device's memory. As on a machine with a GPU they are of no use to the host: they can
// be read and written only while a kernel, a copy or a library's call runs. A function that takes a tensor's pointer
// and forgets where the tensor lies ends in a segmentation fault here, as it would there.
#pragma once

#include <cstdint>

#include "etc_core/base/not_copied.h"

namespace etc::simt {

// Memory of the device, aligned to 256 bytes; null when there is no address space left.
void* take_device_memory(std::int64_t bytes);
void give_device_memory_back(void* memory);
bool is_device_memory(const void* address);

// While one of these lives, the addresses can be used. They nest.
class DeviceAccess : NotCopied {
 public:
  DeviceAccess();
  ~DeviceAccess();
};

}  // namespace etc::simt
