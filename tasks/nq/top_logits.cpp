#include "tasks/nq/top_logits.h"

namespace etc::nq {

WindowLogits TopLogits::window(std::size_t b) const {
  WindowLogits window;
  for (std::size_t c = 0; c < kPositionColumns; ++c) {
    window.largest[c] = largest(b, c);
    window.first[c] = first(b, c);
  }
  return window;
}

}  // namespace etc::nq
