// The statistics of attention probabilities (analysis 2 to 5), in double precision, from rows of probabilities: written
// from the formulas, sharing no code with the library.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace etc::reference {

using Row = std::vector<double>;  // probabilities of one query, one per key

// -sum p ln p, with 0 ln 0 = 0. Nats.
inline double entropy(const Row& p) {
  double sum = 0;
  for (const double x : p) sum -= x > 0 ? x * std::log(x) : 0;
  return sum;
}

// (KL(p|m) + KL(q|m)) / 2 with m = (p+q)/2. Nats; no root.
inline double divergence(const Row& p, const Row& q) {
  double sum = 0;
  for (std::size_t j = 0; j < p.size(); ++j) {
    const double m = (p[j] + q[j]) / 2;
    if (p[j] > 0) sum += p[j] / 2 * std::log(p[j] / m);
    if (q[j] > 0) sum += q[j] / 2 * std::log(q[j] / m);
  }
  return sum;
}

inline double mass(const Row& p) {
  double sum = 0;
  for (const double x : p) sum += x;
  return sum;
}

// p/mass; nan for a row without mass, which is not a distribution.
inline Row renormalised(const Row& p) {
  const double all = mass(p);
  Row row;
  for (const double x : p) row.push_back(all < 1e-9 ? std::numeric_limits<double>::quiet_NaN() : x / all);
  return row;
}

// Keys begin … end-1 of a row.
inline Row part(const Row& p, std::size_t begin, std::size_t end) {
  return {p.begin() + static_cast<std::ptrdiff_t>(begin), p.begin() + static_cast<std::ptrdiff_t>(end)};
}

// The value at position q·(n-1) of the n sorted values, with linear interpolation.
inline double quantile(Row values, double q) {
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace etc::reference
