#include "tasks/plot/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "etc_core/base/grouped.h"

namespace etc::plot {

namespace {

constexpr double kSame = 1e-9;       // relative: ticks computed in different ways are equal
constexpr double kMargin = 1.03;     // between a value and the end of a logarithmic axis
constexpr double kFarthest = 1e300;  // beyond it differences and neighbours of values are infinite
constexpr int kMostPowers = 8;       // labelled

double power_of_ten(double value) {
  return std::pow(10, std::floor(std::log10(value)));
}

// The ticks of 3.2 powers of ten have 1, 2 and 5 of each at least 28 pixels apart on a usual plot.
std::vector<double> logarithmic_ticks(const Axis& axis) {
  const int first = static_cast<int>(std::floor(std::log10(axis.least)));
  const int last = static_cast<int>(std::ceil(std::log10(axis.largest)));
  const double powers = std::log10(axis.largest) - std::log10(axis.least);
  const int step = std::max(1, static_cast<int>(std::ceil(powers / kMostPowers)));
  std::vector<double> all;
  for (int n = first; n <= last; ++n) {
    if (n % step != 0) continue;
    for (const double of : {1.0, 2.0, 5.0}) {
      if (of > 1 && powers > 3.2) break;
      const double tick = of * std::pow(10, n);
      if (tick >= axis.least * (1 - kSame) && tick <= axis.largest * (1 + kSame)) all.push_back(tick);
    }
  }
  return all;
}

}  // namespace

double Axis::at(double value) const {
  const double share = logarithmic ? (std::log(value) - std::log(least)) / (std::log(largest) - std::log(least))
                                   : (value - least) / (largest - least);
  return from + share * (to - from);
}

std::vector<double> Axis::ticks(int count, double least_step) const {
  if (logarithmic) return logarithmic_ticks(*this);
  const double rough = std::max((largest - least) / count, least_step), power = power_of_ten(rough);
  double step = 10 * power;
  for (const double of : {5.0, 2.0, 1.0}) {
    if (of * power >= rough) step = of * power;
  }
  // Integer multiples of the step: adding steps would give something like -1e-17 instead of 0.
  std::vector<double> all;
  const auto last = static_cast<std::int64_t>(std::floor(largest / step + kSame));
  for (auto n = static_cast<std::int64_t>(std::ceil(least / step - kSame)); n <= last; ++n)
    all.push_back(static_cast<double>(n) * step);
  return all;
}

bool can_show(double value, bool logarithmic) {
  return std::abs(value) <= kFarthest && (!logarithmic || value >= 1 / kFarthest);
}

std::pair<double, double> round_range(double least, double largest) {
  const double low = least / kMargin, high = largest * kMargin;
  double from = power_of_ten(low), to = 10 * power_of_ten(high);
  for (const double of : {2.0, 5.0}) {
    if (of * power_of_ten(low) <= low) from = of * power_of_ten(low);
  }
  for (const double of : {5.0, 2.0}) {
    if (of * power_of_ten(high) >= high) to = of * power_of_ten(high);
  }
  return {from, to};
}

std::string tick_text(double value) {
  if (std::abs(value) < 1e9 && value == std::round(value)) return grouped(static_cast<std::int64_t>(value));
  return fmt::format("{:.6g}", value);
}

}  // namespace etc::plot
