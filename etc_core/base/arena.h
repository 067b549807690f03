// Working memory cut from one block that somebody else owns. Stacks that grow (ops/cpu/scratch.h) and a GPU's shared
// memory (simt.h) are divided elsewhere. C++17, because host code beside kernels uses it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "etc_core/base/integers.h"

namespace etc {

// Hands out stretches of one block, aligned as the block is, up to kAlignment bytes. With a null block it only counts:
// the same function that lays out scratch tells its size.
template <std::int64_t kAlignment>
class Arena {
 public:
  explicit Arena(void* block) : block_(static_cast<std::byte*>(block)) {}

  // Room for `count` T. Whole steps of the alignment: vector code loads and stores whole lines without crossing into the
  // next array.
  template <typename T>
  T* take(std::int64_t count) {
    T* const place = block_ == nullptr ? nullptr : reinterpret_cast<T*>(block_ + used_);
    used_ += round_up(count * static_cast<std::int64_t>(sizeof(T)), kAlignment);
    return place;
  }
  // Bytes handed out so far: with a null block, what a block must have.
  std::int64_t used() const { return used_; }

 private:
  std::byte* block_;
  std::int64_t used_ = 0;
};

}  // namespace etc
