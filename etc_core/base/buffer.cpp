#include "etc_core/base/buffer.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>

#include "etc_core/base/counting.h"
#include "etc_core/base/error.h"
#include "etc_core/base/integers.h"
#include "etc_core/base/large_blocks.h"
#include "etc_core/base/out_of_memory.h"

namespace etc {

namespace {

constexpr std::int64_t kAlignment = 64;

// In counting mode, buffers from this size on are only reserved; smaller ones are not worth a mapping of their own.
constexpr std::int64_t kReservedFrom = std::int64_t{1} << 20;

thread_local bool t_counting = false, t_labels_reserved = false;
std::atomic<int> g_reserved_count{0};
std::mutex g_reserved_mutex;
std::map<void*, std::size_t> g_reserved;  // address → bytes; a buffer may outlive counting

std::int64_t rounded(std::int64_t size) {
  return round_up(size, kAlignment);
}

bool is_large(std::int64_t size) {
#ifdef __SANITIZE_ADDRESS__
  return size < 0;  // never: the sanitizer checks the bounds of malloc's blocks only
#else
  return size >= large_blocks::kLeastBytes;
#endif
}

void* reserve(std::size_t bytes) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  const std::scoped_lock lock(g_reserved_mutex);
  g_reserved[data] = bytes;
  ++g_reserved_count;
  return data;
}

void* allocate(std::int64_t size, Purpose purpose, Device device) {
  if (device != Device::cpu) return device_memory(device).allocate(rounded(size));
  const auto bytes = static_cast<std::size_t>(rounded(size));
  const bool read = purpose == Purpose::data || (purpose == Purpose::labels && !t_labels_reserved);
  if (counting() && size >= kReservedFrom && !read) return reserve(bytes);
  if (is_large(size)) return large_blocks::take(size);
  return std::aligned_alloc(kAlignment, bytes);
}

void release(void* data, std::int64_t size, Device device) {
  if (device != Device::cpu) return device_memory(device).release(data);
  if (g_reserved_count > 0) {
    const std::scoped_lock lock(g_reserved_mutex);
    if (const auto found = g_reserved.find(data); found != g_reserved.end()) {
      ::munmap(data, found->second);
      g_reserved.erase(found);
      --g_reserved_count;
      return;
    }
  }
  if (is_large(size)) return large_blocks::give(data, size);
  std::free(data);
}

}  // namespace

bool counting() {
  return t_counting;
}

void reserve_labels(bool reserved) {
  t_labels_reserved = reserved;
}

CountingMode::CountingMode() {
  t_counting = true;
}

CountingMode::~CountingMode() {
  t_counting = false;
}

Bytes::Bytes(std::int64_t size, Purpose purpose, Device device)
    : size_(size), purpose_(purpose), device_(device), ledger_(memory_ledger::current()) {
  if (size < 0) fail("buffer", "size must not be negative, got {}", size);
  if (size == 0) return;
  data_ = allocate(size, purpose, device);
  if (data_ == nullptr) {
    size_ = 0;
    throw OutOfMemory(
        fmt::format("memory: cannot allocate {} bytes for {}; in use:\n{}(shorter inputs or smaller batches need less)",
                    size, purpose_name(purpose), memory_ledger::table()));
  }
  memory_ledger::charge(purpose_, rounded(size_));
}

Bytes::~Bytes() {
  if (data_ == nullptr) return;
  release(data_, size_, device_);
  memory_ledger::give_back(ledger_, purpose_, rounded(size_));
}

}  // namespace etc
