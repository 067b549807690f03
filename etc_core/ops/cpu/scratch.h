// Working memory of one thread for the duration of one call.
//
// Every thread owns a stack of bytes that grows to what it once needed and is kept: kernels take from it without
// allocating. A Scratch gives back everything taken since its construction, so they nest like calls do.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace etc::ops::cpu {

class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // Uninitialised, 64-byte aligned room for `count` elements, charged to Purpose::scratch.
  template <typename T>
  T* take(std::int64_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    return static_cast<T*>(take_bytes(count * static_cast<std::int64_t>(sizeof(T))));
  }

 private:
  void* take_bytes(std::int64_t size);
  std::int64_t chunk_;  // where the stack's top was
  std::int64_t offset_;
};

struct Arena;

// While it lives, the calling thread's stack is one that is only counted (base/counting.h) and begins as large as the
// thread's own. Within CountingMode, outside of every Scratch.
class CountingScratch {
 public:
  CountingScratch();
  ~CountingScratch();
  CountingScratch(const CountingScratch&) = delete;
  CountingScratch& operator=(const CountingScratch&) = delete;

 private:
  std::unique_ptr<Arena> own_;
};

}  // namespace etc::ops::cpu
