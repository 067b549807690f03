// The random projection of linear attention's features.
#pragma once

#include <cstdint>

namespace etc::sparse {

// Parameters of a random projection, which is a pure function of them.
struct PerformerDraw {
  enum class Norms {
    chi,   // norms of Gaussian vectors of D components: the features stay unbiased
    root,  // sqrt(D), the root of their mean square
  };
  std::int64_t features = 0;   // m
  std::int64_t head_size = 0;  // D
  Norms norms = Norms::chi;
  std::uint64_t seed = 0;
  std::int64_t layer = 0;
  std::int64_t redraw = 0;  // number of earlier draws (redraws())
};

// w [m, D] =: blocks of D rows. Each block is an orthogonal matrix (Gram-Schmidt, twice, on Gaussian rows, in double)
// whose rows are multiplied by separately drawn norms; the last block is truncated. Orthogonal features have less
// variance than independent ones.
// Throws Error unless m >= 1 and D >= 1. Cost: O(m*D^2).
// Source: Choromanski et al. 2021, section 2.4 and appendix B.2.
void draw_projection(const PerformerDraw& draw, float* projection);

// The value of PerformerDraw::redraw at a training step: the projection is redrawn every `period` steps (0: never).
std::int64_t redraws(std::int64_t step, std::int64_t period);

}  // namespace etc::sparse
