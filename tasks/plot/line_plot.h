// Line plots with axes, grid and key, as SVG files.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tasks/plot/svg.h"

namespace etc::plot {

enum class Marks { none, filled, hollow };

struct Series {
  std::string name;         // "": not in the key
  Points points;            // nan and what the axes cannot show: a gap
  std::string colour = {};  // "": by its place among the series
  std::string dash = {};    // as in Stroke
  double width = 1.5;
  Marks marks = Marks::none;
};

struct LinePlot {
  std::string title, x_label, y_label;
  std::vector<Series> series;
  bool from_zero = true;  // of the y axis, unless logarithmic
  bool whole_x = true;    // x is an integer (layers, labels, tokens)
  bool logarithmic_x = false, logarithmic_y = false;
  std::vector<double> x_ticks = {};  // {}: round numbers
};

// The plot as a complete SVG file; several plots side by side.
std::string drawn(const LinePlot& plot);
std::string drawn(std::span<const LinePlot> plots);

}  // namespace etc::plot
