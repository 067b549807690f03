// Heat maps.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace etc::analyze {

struct HeatMap {
  std::string title, x_label, y_label, unit;
  std::int64_t first_column = 0, columns = 0, rows = 0;  // first_column: label of the first column; labels rise by 1
  bool rows_fall = false;                                // row 0 at the top (tokens); else at the bottom (components)
  bool signs = true;                                     // blue below 0, white at 0, red above; else white to dark
  std::function<double(std::int64_t row, std::int64_t column)> value;  // nan: no value, drawn grey
};

std::string drawn(const HeatMap& map);

}  // namespace etc::analyze
