#include "tasks/analyze/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tasks/plot/axis.h"
#include "tasks/plot/svg.h"

namespace etc::analyze {

namespace {

using plot::Anchor, plot::Axis, plot::Svg, plot::width_of;

constexpr double kMapTop = 40, kMapLeft = 70, kMapBottom = 50, kScale = 120;
constexpr double kLongest = 640;  // maximum side length

// share: the value divided by the largest one, -1 … 1.
std::string colour_of_share(double share, bool signs) {
  if (std::isnan(share)) return "#c8c8c8";
  const double strength = std::min(1.0, std::abs(share));
  const auto mixed = [&](int to) { return static_cast<int>(std::lround(255 + (to - 255) * strength)); };
  if (!signs) return fmt::format("#{:02x}{:02x}{:02x}", mixed(8), mixed(48), mixed(107));
  return share < 0 ? fmt::format("#{:02x}{:02x}{:02x}", mixed(33), mixed(102), mixed(172))
                   : fmt::format("#{:02x}{:02x}{:02x}", mixed(178), mixed(24), mixed(43));
}

// Draws the colour scale, with the largest value at the top and the least at the bottom.
void draw_scale(Svg& svg, const HeatMap& map, double left, double height, double largest) {
  constexpr int kSteps = 41;
  const double step = height / kSteps;
  for (int n = 0; n < kSteps; ++n) {
    const double at = 1 - static_cast<double>(n) / (kSteps - 1);  // 1 at the top
    svg.rectangle(left, kMapTop + step * n, 14, step + 0.5, colour_of_share(map.signs ? 2 * at - 1 : at, map.signs));
  }
  svg.text(left + 20, kMapTop + 9, fmt::format("{:.3g}", largest));
  if (map.signs) svg.text(left + 20, kMapTop + height / 2 + 4, "0");
  svg.text(left + 20, kMapTop + height, map.signs ? fmt::format("{:.3g}", -largest) : "0");
}

}  // namespace

std::string drawn(const HeatMap& map) {
  const auto columns = static_cast<double>(map.columns), rows = static_cast<double>(map.rows);
  const double cell_x = std::clamp(kLongest / columns, 3.0, 24.0), cell_y = std::clamp(kLongest / rows, 4.0, 18.0);
  const double width = cell_x * columns, height = std::max(150.0, cell_y * rows), row_height = height / rows;
  double largest = 0;
  for (std::int64_t i = 0; i < map.rows * map.columns; ++i) {
    const double value = std::abs(map.value(i / map.columns, i % map.columns));
    if (value > largest) largest = value;
  }
  if (largest == 0) largest = 1;
  const double title = width_of(map.title, 14), under = kMapLeft + width_of(map.unit, 11);
  Svg svg(std::max({kMapLeft + width + kScale, kMapLeft + title, under + width / 2}) + 10,
          kMapTop + height + kMapBottom);
  svg.text(kMapLeft, 22, map.title, Anchor::start, 14);
  for (std::int64_t row = 0; row < map.rows; ++row) {
    const auto place = static_cast<double>(map.rows_fall ? row : map.rows - 1 - row);
    for (std::int64_t column = 0; column < map.columns; ++column) {
      svg.rectangle(kMapLeft + cell_x * static_cast<double>(column), kMapTop + row_height * place, cell_x + 0.2,
                    row_height + 0.2, colour_of_share(map.value(row, column) / largest, map.signs));
    }
  }
  const double bottom = kMapTop + height;
  const auto first = static_cast<double>(map.first_column);
  const Axis x{first, first + std::max(1.0, columns - 1), kMapLeft + cell_x / 2, kMapLeft + width - cell_x / 2};
  for (const double tick : x.ticks(10, 1)) {
    svg.line({x.at(tick), bottom}, {x.at(tick), bottom + 4}, {"#333333"});
    svg.text(x.at(tick), bottom + 16, plot::tick_text(tick), Anchor::middle);
  }
  const double low = map.rows_fall ? kMapTop + row_height / 2 : bottom - row_height / 2;
  const double high = map.rows_fall ? bottom - row_height / 2 : kMapTop + row_height / 2;
  const Axis y{0, std::max(1.0, rows - 1), low, high};
  for (const double tick : y.ticks(8, 1)) {
    if (tick <= rows - 1) svg.text(kMapLeft - 6, y.at(tick) + 4, plot::tick_text(tick), Anchor::end);
  }
  svg.text(kMapLeft + width / 2, bottom + 38, map.x_label, Anchor::middle);
  svg.vertical_text(22, kMapTop + height / 2, map.y_label);
  svg.vertical_text(kMapLeft + width + 84, kMapTop + height / 2, map.unit);
  draw_scale(svg, map, kMapLeft + width + 14, height, largest);
  return svg.finish();
}

}  // namespace etc::analyze
