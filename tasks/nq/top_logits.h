// What decoding reads of the windows' position logits: the largest of each column. Logits on a device stay there; only
// these travel.
#pragma once

#include <cstdint>
#include <vector>

#include "etc_core/autograd/tape.h"
#include "etc_core/ops/top_k.h"
#include "tasks/nq/decode.h"

namespace etc::nq {

class TopLogits {
 public:
  // positions [T, 4] where the model computed them; offsets [B+1]: window b owns rows offsets[b] … offsets[b+1]-1, and
  // at least one.
  TopLogits(const Var& positions, const std::vector<std::int64_t>& offsets);

  // Of window b, without its tokens and types.
  WindowLogits window(std::size_t b) const;

 private:
  std::vector<ops::Ranked> top_;  // [B, 4, kEntriesPerWindow]
  Tensor first_;                  // [B, 4]
  std::vector<std::int64_t> offsets_;
};

}  // namespace etc::nq
