#include "etc_core/nn/encoder.h"

namespace etc {

Tensor ExternalScores::of(std::string_view type) const {
  for (const auto& [name, scores] : scores_) {
    if (name == type) return scores;
  }
  return {};
}

}  // namespace etc
