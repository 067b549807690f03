// A residual sum with a scaled branch, in double. Shares no code with the library.
#pragma once

#include "tests/reference/dense.h"

namespace etc::test {

// x + alpha·branch
inline Reals reference_scaled_sum(const Reals& x, const Reals& branch, double alpha) {
  Reals y = x;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += alpha * branch[i];
  return y;
}

}  // namespace etc::test
