// Device memory of the backend's own, and the division of blocks of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "etc_core/base/buffer.h"
#include "etc_core/base/cuda/runtime.h"
#include "etc_core/base/cuda/span.h"

namespace etc::simt {

// Uninitialised device memory, charged to the ledger while it lives; none for 0 bytes.
inline Bytes device_bytes(std::int64_t bytes, Purpose purpose) {
  return Bytes(bytes, purpose, Device::cuda);
}

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
