// The position logits of windows that decoding needs: the largest of each column. Logits on a device stay there; only
// these are copied to the host.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "etc_core/autograd/tape.h"
#include "etc_core/ops/top_k.h"

namespace etc::span {

class TopLogits {
 public:
  // positions [T, n] on the device that computed them; offsets [B+1]: window b owns rows offsets[b] … offsets[b+1]-1,
  // at least one; count: how many of each column, or all if a window has fewer.
  TopLogits(const Var& positions, const std::vector<std::int64_t>& offsets, std::int64_t count);

  // For window b, in the order of ops/top_k.h.
  std::span<const ops::Ranked> largest(std::size_t b, std::size_t column) const;
  float first(std::size_t b, std::size_t column) const;  // of position 0

 private:
  std::int64_t count_;
  std::size_t columns_;           // n
  std::vector<ops::Ranked> top_;  // [B, n, count]
  Tensor first_;                  // [B, n]
  std::vector<std::int64_t> offsets_;
};

}  // namespace etc::span
