// Axes of plots: from values to pixels, with round numbers as ticks.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace etc::plot {

// Maps a range of values to a range of pixels.
struct Axis {
  double least = 0, largest = 1, from = 0, to = 1;
  bool logarithmic = false;  // then both ends are positive
  double at(double value) const;
  // Round numbers within the range. Linear: about `count` of them and at least `least_step` apart. Logarithmic: 1, 2 and
  // 5 of each power of ten, or over many powers only some of these.
  std::vector<double> ticks(int count, double least_step = 0) const;
};

// Whether an axis can show a value: finite, and positive if logarithmic.
bool can_show(double value, bool logarithmic);

// The range of a logarithmic axis for values between these two: outwards to the next of 1, 2 and 5 of a power of ten, so
// that there are at least two ticks and no value lies at an end.
std::pair<double, double> round_range(double least, double largest);

// A tick's label: "16,384", "0.05", "1e+12".
std::string tick_text(double value);

}  // namespace etc::plot
