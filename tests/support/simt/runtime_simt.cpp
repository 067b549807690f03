// The runtime of an emulated device. The host cannot access its memory (device_space.h); new memory is filled with
// signalling NaN patterns, so that uninitialised values show up as nan.
#include <cstring>
#include <map>

#include "etc_core/base/cuda/runtime.h"
#include "etc_core/base/cuda/runtime_errors.h"
#include "etc_core/base/error.h"
#include "etc_core/base/integers.h"
#include "etc_core/base/memory_ledger.h"
#include "etc_core/base/out_of_memory.h"
#include "tests/support/simt/copy_queues.h"
#include "tests/support/simt/device_loss.h"
#include "tests/support/simt/device_space.h"
#include "tests/support/simt/emulator.h"

namespace etc::simt {

namespace {
std::int64_t g_capacity = std::int64_t{1} << 40, g_used = 0;
std::map<void*, std::int64_t> g_sizes;
}  // namespace

std::int64_t memory_in_use() {
  return g_used;
}

void set_memory_capacity(std::int64_t bytes) {
  g_capacity = bytes;
}

void check_cuda(const char* where, int status) {
  if (status != 0) fail_in_runtime(where, status, "emulated", "a failure on request");
}

std::string device_description() {
  return "emulated device";
}

void* stream() {
  return nullptr;
}

void* allocate(std::int64_t bytes) {
  check_device("memory");
  const std::int64_t rounded = round_up(bytes, 256);
  if (g_used + rounded > g_capacity) {
    throw OutOfMemory(
        fmt::format("memory: cannot allocate {} bytes of device memory; in use:\n{}", bytes, memory_ledger::table()));
  }
  void* memory = take_device_memory(rounded);
  if (memory == nullptr) fail("memory", "cannot allocate {} bytes", bytes);
  const DeviceAccess access;
  std::memset(memory, 0xff, static_cast<std::size_t>(rounded));
  g_sizes[memory] = rounded;
  g_used += rounded;
  return memory;
}

void release(void* memory) {
  run_queued_work();  // in stream order
  const auto found = g_sizes.find(memory);
  g_used -= found->second;
  g_sizes.erase(found);
  give_device_memory_back(memory);
}

void copy_within(void* to, const void* from, std::int64_t bytes) {
  if (bytes == 0 || !begin_operation("copy on the device")) return;
  const DeviceAccess access;
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void wait() {
  check_device("waiting for the device");
  run_queued_work();
}

std::int64_t memory_capacity() {
  return g_capacity;
}

void fill_zero(void* memory, std::int64_t bytes) {
  if (bytes == 0 || !begin_operation("fill")) return;
  const DeviceAccess access;
  std::memset(memory, 0, static_cast<std::size_t>(bytes));
}

}  // namespace etc::simt
