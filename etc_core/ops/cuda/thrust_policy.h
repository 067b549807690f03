// Selects where Thrust runs: on the device in programs, on its OpenMP system in tests.
#pragma once

#include <thrust/execution_policy.h>
#include <thrust/system_error.h>

#include <cstddef>

#include "etc_core/base/cuda/runtime.h"
#include "etc_core/base/memory_ledger.h"

namespace etc::ops::cuda {

#if THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_CUDA

// Allocator that takes Thrust's working memory from the backend's pool and charges it to the ledger. By default Thrust
// uses cudaMalloc, and freeing such memory waits for the device.
struct PoolMemory {
  using value_type = char;
  char* allocate(std::ptrdiff_t bytes) {
    auto* const memory = static_cast<char*>(simt::allocate(bytes));
    memory_ledger::charge(Purpose::scratch, bytes);
    return memory;
  }
  void deallocate(char* memory, std::size_t bytes) {
    simt::release(memory);
    memory_ledger::charge(Purpose::scratch, -static_cast<std::int64_t>(bytes));
  }
};

// Calls body(policy). Calls run in stream order and wait for the device only if they return a number from it. Thrust's
// exceptions are converted to errors of the runtime (runtime.h); `where` names the call.
template <typename Body>
auto with_thrust(const char* where, void* stream, Body body) {
  static PoolMemory memory;
  try {
    return body(thrust::cuda::par_nosync(memory).on(static_cast<cudaStream_t>(stream)));
  } catch (const thrust::system_error& error) {
    simt::check_cuda(where, error.code().value());
    throw;
  }
}

#else  // Thrust's OpenMP system: plain host memory, and no stream to wait for

template <typename Body>
auto with_thrust(const char*, void*, Body body) {
  return body(thrust::device);
}

#endif

}  // namespace etc::ops::cuda
