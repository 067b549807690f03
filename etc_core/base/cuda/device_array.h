// Owned device memory of the backend's own, and the division of blocks of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "etc_core/base/cuda/runtime.h"
#include "etc_core/base/cuda/span.h"
#include "etc_core/base/memory_ledger.h"

namespace etc::simt {

// One block of device memory, charged to the ledger while it lives.
class DeviceBlock {
 public:
  DeviceBlock() = default;
  DeviceBlock(std::int64_t bytes, Purpose purpose) : purpose_(purpose) {
    if (bytes <= 0) return;
    data_ = allocate(bytes);
    bytes_ = bytes;
    memory_ledger::charge(purpose_, bytes_);
  }
  ~DeviceBlock() {
    if (data_ == nullptr) return;
    release(data_);
    memory_ledger::charge(purpose_, -bytes_);
  }
  DeviceBlock(DeviceBlock&& other) noexcept { swap(other); }
  DeviceBlock& operator=(DeviceBlock&& other) noexcept {
    swap(other);
    return *this;
  }
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;
  void* data() const { return data_; }

 private:
  void swap(DeviceBlock& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(purpose_, other.purpose_);
  }
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
  Purpose purpose_ = Purpose::scratch;
};

// Deals out 256-byte aligned spans of a block. Of a null block it only counts: the function that lays a block out tells
// its size, too.
class Carver {
 public:
  explicit Carver(void* block) : block_(static_cast<std::byte*>(block)) {}
  template <typename T>
  Span<T> take(std::int64_t count) {
    Span<T> span{block_ == nullptr || count == 0 ? nullptr : reinterpret_cast<T*>(block_ + used_), count};
    used_ += (count * static_cast<std::int64_t>(sizeof(T)) + 255) / 256 * 256;
    return span;
  }
  std::int64_t used() const { return used_; }

 private:
  std::byte* block_;
  std::int64_t used_ = 0;
};

template <typename T>
Span<const T> read_only(const Span<T>& span) {
  return {span.data, span.size};
}

}  // namespace etc::simt
