// Transformer-XL's position biases and their gradients, in double. Shares no code with the library.
#pragma once

#include <cstdint>

#include "tests/reference/dense.h"

namespace etc::test {

// y [R, N]: y_rn = sum_c (v − u)_nc rel_rnc;  rel [R, N, D], u and v [N, D], an empty u or v counts as 0
inline Reals reference_position_bias(std::int64_t heads, std::int64_t head_size, const Reals& rel, const Reals& u,
                                     const Reals& v) {
  const std::int64_t width = heads * head_size, rows = static_cast<std::int64_t>(rel.size()) / width;
  Reals y(static_cast<std::size_t>(rows * heads), 0);
  for (std::int64_t i = 0; i < rows * width; ++i) {
    const auto c = static_cast<std::size_t>(i % width);
    const double difference = (v.empty() ? 0 : v[c]) - (u.empty() ? 0 : u[c]);
    y[static_cast<std::size_t>(i / head_size)] += difference * rel[static_cast<std::size_t>(i)];
  }
  return y;
}

struct PositionBiasGradients {
  Reals drel;  // [R, N, D]  dy_rn (v − u)_nc
  Reals dv;    // [N, D]     sum_r dy_rn rel_rnc; du is its negative
};
inline PositionBiasGradients reference_position_bias_backward(std::int64_t heads, std::int64_t head_size,
                                                              const Reals& rel, const Reals& u, const Reals& v,
                                                              const Reals& dy) {
  const std::int64_t width = heads * head_size, rows = static_cast<std::int64_t>(rel.size()) / width;
  PositionBiasGradients gradients{Reals(rel.size(), 0), Reals(static_cast<std::size_t>(width), 0)};
  for (std::int64_t i = 0; i < rows * width; ++i) {
    const auto at = static_cast<std::size_t>(i), c = static_cast<std::size_t>(i % width);
    const double upstream = dy[static_cast<std::size_t>(i / head_size)];
    gradients.drel[at] = upstream * ((v.empty() ? 0 : v[c]) - (u.empty() ? 0 : u[c]));
    gradients.dv[c] += upstream * rel[at];
  }
  return gradients;
}

}  // namespace etc::test
