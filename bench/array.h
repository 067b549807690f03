// Arrays as the program allocates its buffers (base/buffer.h): at least 64-byte aligned, large ones in huge pages. In a
// plain std::vector every vector of 64 bytes would cross a cache line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#include "etc_core/base/integers.h"
#include "etc_core/base/large_blocks.h"

namespace etc::bench {

template <typename T>
struct ArrayAllocator {
  using value_type = T;

  ArrayAllocator() = default;
  template <typename Other>
  ArrayAllocator(const ArrayAllocator<Other>& /*other*/) {}

  T* allocate(std::size_t count) {
    const std::int64_t size = bytes(count);
    void* const data = size < large_blocks::kLeastBytes ? std::aligned_alloc(64, static_cast<std::size_t>(size))
                                                        : large_blocks::take(size);
    if (data == nullptr) throw std::bad_alloc();
    return static_cast<T*>(data);
  }
  void deallocate(T* data, std::size_t count) {
    const std::int64_t size = bytes(count);
    size < large_blocks::kLeastBytes ? std::free(data) : large_blocks::give(data, size);
  }
  bool operator==(const ArrayAllocator& /*other*/) const { return true; }

 private:
  static std::int64_t bytes(std::size_t count) {
    return round_up(static_cast<std::int64_t>(count * sizeof(T)), std::int64_t{64});
  }
};

template <typename T>
using Array = std::vector<T, ArrayAllocator<T>>;

}  // namespace etc::bench
