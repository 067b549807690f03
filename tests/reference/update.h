// One step of AdamW and LAMB in double, written from etc-core 10.3 and 10.4. Shares no code with the library.
#pragma once

#include <cmath>

#include "tests/reference/dense.h"
#include "tests/reference/elementwise.h"

namespace etc::test {

// One parameter with its moments.
struct ReferenceUpdate {
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-6, decay = 0;
  Reals w, m, v;

  // m = β₁m + (1-β₁)g      v = β₂v + (1-β₂)g²
  void take_gradient(const Reals& g) {
    for (std::size_t i = 0; i < w.size(); ++i) {
      m[i] = beta_1 * m[i] + (1 - beta_1) * g[i];
      v[i] = beta_2 * v[i] + (1 - beta_2) * g[i] * g[i];
    }
  }

  // u = m/(sqrt(v)+ε) + λw
  Reals update() const {
    Reals u;
    for (std::size_t i = 0; i < w.size(); ++i) u.push_back(m[i] / (std::sqrt(v[i]) + epsilon) + decay * w[i]);
    return u;
  }

  // One step with gradient g; w = w - ρ·rate·u. Returns ρ: ‖w‖/‖u‖ if LAMB adapts and both are above 0, else 1.
  double step(const Reals& g, double rate, bool adapted) {
    take_gradient(g);
    const Reals u = update();
    const double ww = reference_sum_of_squares(w), uu = reference_sum_of_squares(u);
    const double ratio = adapted && ww > 0 && uu > 0 ? std::sqrt(ww / uu) : 1.0;
    w = reference_axpy(-ratio * rate, u, w);
    return ratio;
  }
};

}  // namespace etc::test
