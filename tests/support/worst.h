// The worst of many differences.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace etc::test {

// Raises `worst` to a larger difference. nan, which std::max would drop, is the largest of all.
inline void keep_worst(double& worst, double difference) {
  if (!(difference <= worst)) worst = std::isnan(difference) ? HUGE_VAL : difference;
}

// A difference in units of the tolerance, which is `absolute` + `relative`·|expected|.
inline double in_tolerances(double got, double expected, double absolute, double relative) {
  return std::abs(got - expected) / (absolute + relative * std::abs(expected));
}

// The worst difference in units of the tolerance; infinite when the numbers are not as many.
template <typename Got>
double worst_difference(const std::vector<double>& expected, const std::vector<Got>& got, double absolute,
                        double relative) {
  if (expected.size() != got.size()) return HUGE_VAL;
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    keep_worst(worst, in_tolerances(static_cast<double>(got[i]), expected[i], absolute, relative));
  }
  return worst;
}

}  // namespace etc::test
