// Violins of a quantity: a row for each layer, a column for each head (analysis 2, 3, 8).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tasks/analyze/distribution.h"
#include "tasks/plot/svg.h"

namespace etc::analyze {

// Gaussian kernel density estimate of a distribution's bins with bandwidth 1.06 sigma n^(-1/5), at evenly spaced points from
// its least to its largest value: (value, density). One point if all values are equal; none without values.
plot::Points density_of(const Distribution& cell);

// One grid of violins, coloured by the median: red above `high`, blue below `low`, yellow between.
struct ViolinGrid {
  std::string title, unit;
  std::string axis;   // label of a row's vertical axis
  double factor = 1;  // converts values to the unit shown
  double upper = 1;   // upper end of the axis, in that unit
  double low = 0, high = 1;
  std::int64_t first_row = 0, rows = 0, columns = 0;  // rows are layers
  std::function<const Distribution&(std::int64_t row, std::int64_t column)> cell;
  std::function<std::string(std::int64_t row, std::int64_t column)> label;  // below a violin
};

// Grids side by side in one SVG file.
std::string drawn(const std::string& title, const std::vector<ViolinGrid>& grids);

}  // namespace etc::analyze
