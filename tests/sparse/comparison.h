// Compares an attention operator's numbers with those of the reference, with tolerances from fp32 rounding.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/reference/attention.h"

namespace etc::test {

inline constexpr double kUnit = 0x1p-24;  // relative rounding error of one fp32 operation

inline double largest(const reference::Values& values) {
  double result = 0.0;
  for (const double value : values) result = std::max(result, std::fabs(value));
  return result;
}

// Records the first number whose error exceeds its tolerance.
struct Comparison {
  std::string where;
  std::string worst;  // empty: no error exceeds its tolerance

  // |got - expected| <= tolerance everywhere; NaN fails, too.
  void check(const std::string& name, const reference::Values& got, const reference::Values& expected,
             double tolerance) {
    if (got.size() != expected.size()) {
      worst = fmt::format("{}: {}: sizes {} and {}", where, name, got.size(), expected.size());
      return;
    }
    for (std::size_t i = 0; i < got.size() && worst.empty(); ++i) {
      if (got[i] == expected[i]) continue;  // infinities
      const double error = std::fabs(got[i] - expected[i]);
      if (error <= tolerance) continue;
      worst = fmt::format("{}: {}[{}]: expected {}, got {}, off by {} > {}", where, name, i, expected[i], got[i], error,
                          tolerance);
    }
  }
};

}  // namespace etc::test
