// Working memory of one thread for the duration of one call.
//
// Every thread owns a stack of bytes that grows to the largest size needed and is then kept, so kernels take memory
// from it without allocating. A Scratch releases everything taken since its construction; Scratch objects nest like
// calls.
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
  std::int64_t chunk_;  // top of the stack at construction
  std::int64_t offset_;
};

struct Arena;

// During its lifetime, the calling thread uses a stack that is only counted (base/counting.h) and initially as large as
// the thread's own. Create it within CountingMode and outside of every Scratch.
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
