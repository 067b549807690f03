// Helpers for host code of operators that passes arrays to kernels.
#pragma once

#include <cstdint>

#include "etc_core/base/bf16.h"
#include "etc_core/base/cuda/device_array.h"

namespace etc::ops::cuda {

using simt::Span;

// A copy of a host array on the device for the duration of one call; null gives an empty span.
template <typename T>
class OnDevice {
 public:
  OnDevice(const T* values, std::int64_t count)
      : block_(
            simt::device_bytes(values == nullptr ? 0 : count * static_cast<std::int64_t>(sizeof(T)), Purpose::scratch)),
        count_(values ? count : 0) {
    if (count_ > 0) simt::copy_to_device(block_.data(), values, count_ * static_cast<std::int64_t>(sizeof(T)));
  }
  Span<const T> span() const { return {static_cast<const T*>(block_.data()), count_}; }

 private:
  Bytes block_;         // [count]
  std::int64_t count_;  // 0 where there is no array
};

// Empty where the pointer is null.
template <typename T>
Span<T> span(T* data, std::int64_t size) {
  return {data, data == nullptr ? 0 : size};
}

// `size` numbers of bf16, an even number of them, as words of two.
inline Span<const std::uint32_t> words(const Bf16* data, std::int64_t size) {
  return {reinterpret_cast<const std::uint32_t*>(data), data == nullptr ? 0 : size / 2};
}
inline Span<std::uint32_t> words(Bf16* data, std::int64_t size) {
  return {reinterpret_cast<std::uint32_t*>(data), data == nullptr ? 0 : size / 2};
}

}  // namespace etc::ops::cuda
