// An arena: arrays of working memory taken from one block, which it does not own. Growing scratch memory is in
// ops/cpu/scratch.h, a GPU's shared memory in simt.h. C++17, because host code beside kernels uses it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "etc_core/base/integers.h"

namespace etc {

// Hands out ranges of one block, aligned as the block is, up to kAlignment bytes. With a null block it only counts, so
// the function that lays out scratch memory also computes its size.
template <std::int64_t kAlignment>
class Arena {
 public:
  explicit Arena(void* block) : block_(static_cast<std::byte*>(block)) {}

  // Memory for `count` T, rounded up to a multiple of the alignment: vector code may load and store whole cache lines
  // without crossing into the next array.
  template <typename T>
  T* take(std::int64_t count) {
    T* const place = block_ == nullptr ? nullptr : reinterpret_cast<T*>(block_ + used_);
    used_ += round_up(count * static_cast<std::int64_t>(sizeof(T)), kAlignment);
    return place;
  }
  // Bytes handed out so far; with a null block, the size that the block must have.
  std::int64_t used() const { return used_; }

 private:
  std::byte* block_;
  std::int64_t used_ = 0;
};

}  // namespace etc
