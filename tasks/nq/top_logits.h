// The position logits of Natural Questions windows that decoding reads.
#pragma once

#include <cstdint>
#include <vector>

#include "tasks/nq/decode.h"
#include "tasks/span/top_logits.h"

namespace etc::nq {

class TopLogits : public span::TopLogits {
 public:
  // positions [T, 4].
  TopLogits(const Var& positions, const std::vector<std::int64_t>& offsets)
      : span::TopLogits(positions, offsets, kEntriesPerWindow) {}

  // Of window b, without its tokens and types.
  WindowLogits window(std::size_t b) const;
};

}  // namespace etc::nq
