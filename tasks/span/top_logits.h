// What decoding reads of the windows' position logits: the largest of each column. Logits on a device stay there; only
// these travel.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "etc_core/autograd/tape.h"
#include "etc_core/ops/top_k.h"

namespace etc::span {

class TopLogits {
 public:
  // positions [T, n] where the model computed them; offsets [B+1]: window b owns rows offsets[b] … offsets[b+1]-1, and
  // at least one; count: so many of each column, or all where a window has fewer.
  TopLogits(const Var& positions, const std::vector<std::int64_t>& offsets, std::int64_t count);

  // Of window b, in the order of ops/top_k.h.
  std::span<const ops::Ranked> largest(std::size_t b, std::size_t column) const;
  float first(std::size_t b, std::size_t column) const;  // of its position 0

 private:
  std::int64_t count_;
  std::size_t columns_;           // n
  std::vector<ops::Ranked> top_;  // [B, n, count]
  Tensor first_;                  // [B, n]
  std::vector<std::int64_t> offsets_;
};

}  // namespace etc::span
