// Numbers that are error-prone to order, in runs of awkward lengths.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "etc_core/ops/top_k.h"
#include "tests/reference/top_k.h"
#include "tests/support/numbers.h"

namespace etc::test {

struct TopKCase {
  std::vector<std::int64_t> offsets = {0, 0, 1, 8, 8, 78, 378, 378};  // empty at both ends and inside
  std::int64_t cols = 0, k = 0;
  std::vector<float> z;

  std::int64_t segments() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
};

// Few distinct numbers of both signs, both zeros, large and tiny ones; with_faults: also non-finite ones.
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

// Compares rows and bits of values.
inline bool same_entries(const std::vector<ops::Ranked>& a, const std::vector<ops::Ranked>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(ops::Ranked)) == 0;
}

// The entries of the rows that the reference names.
inline std::vector<ops::Ranked> top_k_by_definition(const TopKCase& of) {
  const Reals z(of.z.begin(), of.z.end());
  const std::vector<std::int32_t> rows = reference_top_k_rows(of.offsets, of.cols, of.k, z);
  std::vector<ops::Ranked> top(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < 0) continue;
    const auto list = static_cast<std::int64_t>(i) / of.k;  // segment list / cols, column list % cols
    const std::int64_t row = of.offsets[static_cast<std::size_t>(list / of.cols)] + rows[i];
    top[i] = {rows[i], of.z[static_cast<std::size_t>(row * of.cols + list % of.cols)]};
  }
  return top;
}

}  // namespace etc::test
