// The runtime of an emulated device: its memory is the host's. New memory is poisoned with signalling patterns, so what
// nobody has written shows up as nan.
#include <cstdlib>
#include <cstring>

#include "etc_core/base/cuda/runtime.h"
#include "etc_core/base/error.h"

namespace etc::simt {

void check_cuda(const char* where, int status) {
  if (status != 0) fail(where, "status {}", status);
}

void* stream() {
  return nullptr;
}

void* allocate(std::int64_t bytes) {
  const std::int64_t rounded = (bytes + 255) / 256 * 256;
  void* memory = std::aligned_alloc(256, static_cast<std::size_t>(rounded));
  if (memory == nullptr) fail("memory", "{} bytes are not to be had", bytes);
  std::memset(memory, 0xff, static_cast<std::size_t>(rounded));
  return memory;
}

void release(void* memory) {
  std::free(memory);
}

void copy_to_device(void* to, const void* from, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void copy_to_host(void* to, const void* from, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void copy_within(void* to, const void* from, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void fill_zero(void* memory, std::int64_t bytes) {
  if (bytes > 0) std::memset(memory, 0, static_cast<std::size_t>(bytes));
}

}  // namespace etc::simt
