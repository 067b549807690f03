// Pictures of numbers in rows and columns, a colour for each.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tasks/analyze/svg.h"

namespace etc::analyze {

struct HeatMap {
  std::string title, x_label, y_label, unit;
  std::int64_t first_column = 0, columns = 0, rows = 0;  // what the first column stands for; they rise by 1
  bool rows_fall = false;                                // row 0 at the top (tokens); else at the bottom (components)
  bool signs = true;                                     // blue below 0, white, red above; else from white at 0 to dark
  std::function<double(std::int64_t row, std::int64_t column)> value;  // nan: nothing there, grey
};

std::string drawn(const HeatMap& map);

}  // namespace etc::analyze
