// Numbers whose order is easily got wrong, in runs of awkward lengths.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "etc_core/ops/top_k.h"
#include "tests/support/numbers.h"

namespace etc::test {

struct TopKCase {
  std::vector<std::int64_t> offsets = {0, 0, 1, 8, 8, 78, 378, 378};  // empty at both ends and inside
  std::int64_t cols = 0, k = 0;
  std::vector<float> z;

  std::int64_t segments() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
};

// Few distinct numbers of either sign, both zeros, large and tiny ones; with_faults: some that are not finite.
inline TopKCase top_k_case(std::int64_t cols, std::int64_t k, bool with_faults) {
  TopKCase made;
  made.cols = cols;
  made.k = k;
  made.z = random_floats(made.offsets.back() * cols, 7);
  for (std::size_t i = 0; i < made.z.size(); ++i) {
    if (i % 3 == 0) made.z[i] = std::round(made.z[i] * 4) / 4;
    if (i % 17 == 1) made.z[i] = i % 2 == 0 ? 0.0f : -0.0f;
    if (i % 41 == 2) made.z[i] *= 1e38f;
    if (i % 43 == 3) made.z[i] *= 1e-42f;
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    if (with_faults && i % 29 == 4) made.z[i] = i % 2 == 0 ? kInfinity : -kInfinity;
    if (with_faults && i % 31 == 5) made.z[i] = std::numeric_limits<float>::quiet_NaN();
  }
  return made;
}

// Equal rows, equal bits.
inline bool same_entries(const std::vector<ops::Ranked>& a, const std::vector<ops::Ranked>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(ops::Ranked)) == 0;
}

// top_k by its definition, one entry after the other.
inline std::vector<ops::Ranked> top_k_by_definition(const TopKCase& of) {
  std::vector<ops::Ranked> top;
  for (std::int64_t list = 0; list < of.segments() * of.cols; ++list) {
    const auto segment = static_cast<std::size_t>(list / of.cols);
    std::vector<ops::Ranked> left;
    for (std::int64_t row = of.offsets[segment]; row < of.offsets[segment + 1]; ++row) {
      left.push_back({static_cast<std::int32_t>(row - of.offsets[segment]),
                      of.z[static_cast<std::size_t>(row * of.cols + list % of.cols)]});
    }
    for (std::int64_t j = 0; j < of.k; ++j) {
      std::size_t best = 0;
      for (std::size_t i = 1; i < left.size(); ++i) {  // only what is truly better takes the place of an earlier row
        const bool finite = std::isfinite(left[best].value);
        if (finite && (!std::isfinite(left[i].value) || left[i].value > left[best].value)) best = i;
      }
      top.push_back(left.empty() ? ops::Ranked{} : left[best]);
      if (!left.empty()) left.erase(left.begin() + static_cast<std::ptrdiff_t>(best));
    }
  }
  return top;
}

}  // namespace etc::test
