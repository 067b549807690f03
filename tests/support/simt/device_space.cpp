#include "tests/support/simt/device_space.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <map>

#include "etc_core/base/error.h"
#include "etc_core/base/integers.h"
#include "tests/support/simt/copy_queues.h"

namespace etc::simt {

namespace {

constexpr std::int64_t kReserved = std::int64_t{1} << 36;  // address space, not memory
constexpr std::int64_t kHugePage = 1 << 21;                // few page table entries to change per access change
constexpr std::int64_t kAlignment = 256;

// First-fit allocation in one range of addresses; adjacent free blocks are merged.
class DeviceSpace {
 public:
  DeviceSpace() {
    void* const range = ::mmap(nullptr, static_cast<std::size_t>(kReserved), PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) fail("emulated device", "cannot reserve {} bytes of addresses", kReserved);
    base_ = static_cast<std::byte*>(range);
    static_cast<void>(::madvise(range, static_cast<std::size_t>(kReserved), MADV_HUGEPAGE));  // a hint
    free_[0] = kReserved;
  }

  void* take(std::int64_t bytes) {
    const std::int64_t size = round_up(bytes, kAlignment);
    const auto fit = std::find_if(free_.begin(), free_.end(), [&](const auto& block) { return block.second >= size; });
    if (fit == free_.end()) return nullptr;
    const auto [at, room] = *fit;
    free_.erase(fit);
    if (room > size) free_[at + size] = room - size;
    taken_[at] = size;
    used_ = std::max(used_, round_up(at + size, kHugePage));
    if (open_ > 0) protect();
    return base_ + at;
  }

  void give_back(void* memory) {
    const auto block = taken_.find(static_cast<std::byte*>(memory) - base_);
    if (block == taken_.end()) fail("emulated device", "memory given back that was not taken");
    auto [at, size] = *block;
    taken_.erase(block);
    const auto next = free_.lower_bound(at);
    if (next != free_.end() && next->first == at + size) {
      size += next->second;
      free_.erase(next);
    }
    const auto behind = free_.lower_bound(at);
    if (behind != free_.begin()) {
      const auto before = std::prev(behind);
      if (before->first + before->second == at) {
        before->second += size;
        return;
      }
    }
    free_[at] = size;
  }

  bool holds(const void* address) const {
    const auto* const byte = static_cast<const std::byte*>(address);
    return byte >= base_ && byte < base_ + kReserved;
  }

  bool is_open() const { return open_ > 0; }
  void open() {
    if (++open_ == 1) protect();
  }
  void close() {
    if (--open_ == 0) protect();
  }

 private:
  void protect() const {
    if (used_ == 0) return;
    const int access = open_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE;
    if (::mprotect(base_, static_cast<std::size_t>(used_), access) != 0) fail("emulated device", "mprotect failed");
  }

  std::byte* base_ = nullptr;
  std::map<std::int64_t, std::int64_t> free_, taken_;  // offset, bytes
  std::int64_t used_ = 0;                              // addresses from here on were never allocated
  int open_ = 0;
};

DeviceSpace& space() {
  static auto* const only = new DeviceSpace;  // outlives tensors in static variables
  return *only;
}

}  // namespace

void* take_device_memory(std::int64_t bytes) {
  return space().take(bytes);
}

void give_device_memory_back(void* memory) {
  space().give_back(memory);
}

bool is_device_memory(const void* address) {
  return space().holds(address);
}

DeviceAccess::DeviceAccess() {
  if (!space().is_open()) run_queued_work();  // earlier queued work runs first
  space().open();
}

DeviceAccess::~DeviceAccess() {
  space().close();
}

}  // namespace etc::simt
