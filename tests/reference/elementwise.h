// Arithmetic on whole arrays in double. Shares no code with the library.
#pragma once

#include "tests/reference/dense.h"

namespace etc::test {

// a + s·b
inline Reals reference_axpy(double s, const Reals& b, Reals a) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += s * b[i];
  return a;
}

// s·a
inline Reals reference_scale(double s, Reals a) {
  for (double& value : a) value *= s;
  return a;
}

// Sum of x²
inline double reference_sum_of_squares(const Reals& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return sum;
}

}  // namespace etc::test
