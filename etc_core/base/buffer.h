// Owned, 64-byte aligned memory that is charged to the ledger for as long as it lives: on the host, or on a device
// whose backend is ready (backend.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "etc_core/base/device_memory.h"
#include "etc_core/base/memory_ledger.h"

namespace etc {

// Raw bytes; the size is rounded up to whole 64-byte lines, so vector code may read (not write) up to a line's end.
class Bytes {
 public:
  Bytes() = default;
  // Uninitialised memory. Throws Error with the ledger's table when there is none left.
  Bytes(std::int64_t size, Purpose purpose, Device device = Device::cpu);
  ~Bytes();
  Bytes(Bytes&& other) noexcept { swap(other); }
  Bytes& operator=(Bytes&& other) noexcept {
    swap(other);
    return *this;
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  void* data() { return data_; }
  const void* data() const { return data_; }
  std::int64_t size() const { return size_; }
  Device device() const { return device_; }

 private:
  void swap(Bytes& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(purpose_, other.purpose_);
    std::swap(device_, other.device_);
    std::swap(ledger_, other.ledger_);
  }
  void* data_ = nullptr;
  std::int64_t size_ = 0;
  Purpose purpose_ = Purpose::scratch;
  Device device_ = Device::cpu;
  memory_ledger::Id ledger_ = 0;
};

// A fixed-size array of trivially copyable T on Bytes. The host must not access elements of a buffer on a device.
template <typename T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  Buffer(std::int64_t size, Purpose purpose, Device device = Device::cpu)
      : bytes_(size * static_cast<std::int64_t>(sizeof(T)), purpose, device) {}

  T* data() { return static_cast<T*>(bytes_.data()); }
  const T* data() const { return static_cast<const T*>(bytes_.data()); }
  std::int64_t size() const { return bytes_.size() / static_cast<std::int64_t>(sizeof(T)); }
  bool empty() const { return size() == 0; }
  T& operator[](std::int64_t i) { return data()[i]; }
  const T& operator[](std::int64_t i) const { return data()[i]; }
  T* begin() { return data(); }
  T* end() { return data() + size(); }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  std::span<T> span() { return {data(), static_cast<std::size_t>(size())}; }
  std::span<const T> span() const { return {data(), static_cast<std::size_t>(size())}; }
  Device device() const { return bytes_.device(); }
  void zero() { zero_bytes(device(), data(), bytes_.size()); }

 private:
  Bytes bytes_;
};

}  // namespace etc
