// The random directions of linear attention's features.
#pragma once

#include <cstdint>

namespace etc::sparse {

// Which directions: a pure function of these numbers.
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
  std::int64_t redraw = 0;  // how often they were drawn anew before
};

// w [m, D] =: blocks of D rows, each the rows of an orthogonal matrix (Gram and Schmidt, twice, on Gaussian rows, in
// double) times norms drawn apart; the last block is cut off. Orthogonal features have less variance than independent
// ones.
// Throws Error unless m >= 1 and D >= 1. Cost: O(m*D^2).
// Source: Choromanski et al. 2021, section 2.4 and appendix B.2.
void draw_projection(const PerformerDraw& draw, float* projection);

// The draw of a training step: `redraw` counts the periods of so many steps that have passed; period 0: never drawn anew.
std::int64_t redraws(std::int64_t step, std::int64_t period);

}  // namespace etc::sparse
