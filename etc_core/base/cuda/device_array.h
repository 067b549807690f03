// Device memory for the backend's own use, and its division into spans.
#pragma once

#include <cstdint>

#include "etc_core/base/arena.h"
#include "etc_core/base/buffer.h"
#include "etc_core/base/cuda/runtime.h"
#include "etc_core/base/cuda/span.h"

namespace etc::simt {

// Uninitialised device memory, charged to the ledger while it lives; none for 0 bytes.
inline Bytes device_bytes(std::int64_t bytes, Purpose purpose) {
  return Bytes(bytes, purpose, Device::cuda);
}

// An arena of 256-byte aligned spans, the alignment of the device's allocations; an empty span is null.
class Carver {
 public:
  explicit Carver(void* block) : arena_(block) {}
  template <typename T>
  Span<T> take(std::int64_t count) {
    T* const place = arena_.take<T>(count);
    return {count == 0 ? nullptr : place, count};
  }
  std::int64_t used() const { return arena_.used(); }

 private:
  Arena<256> arena_;
};

template <typename T>
Span<const T> read_only(const Span<T>& span) {
  return {span.data, span.size};
}

}  // namespace etc::simt
