// Working memory of one task, cut from one block.
#pragma once

#include <cstddef>
#include <cstdint>

namespace etc::sparse {

// Hands out 64-byte aligned stretches of one block. With a null block it only counts: the same function that lays out a
// task's scratch tells its size.
class Arena {
 public:
  explicit Arena(void* block) : block_(static_cast<std::byte*>(block)) {}

  template <typename T>
  // Room for `count` T. Whole 64-byte lines: vector code loads and stores them without crossing into the next array.
  T* take(std::int64_t count) {
    T* place = block_ == nullptr ? nullptr : reinterpret_cast<T*>(block_ + used_);
    used_ += (count * static_cast<std::int64_t>(sizeof(T)) + 63) / 64 * 64;
    return place;
  }
  // Bytes handed out so far: with a null block, what a block must have.
  std::int64_t used() const { return used_; }

 private:
  std::byte* block_;
  std::int64_t used_ = 0;
};

}  // namespace etc::sparse
