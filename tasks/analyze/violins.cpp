#include "tasks/analyze/violins.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tasks/plot/axis.h"

namespace etc::analyze {

using plot::Anchor, plot::Axis, plot::Points, plot::Svg, plot::width_of;

namespace {

constexpr double kColumn = 44, kRow = 84, kPlot = 62, kLeft = 72, kTop = 74, kBottom = 44;
constexpr int kPlaces = 64;

const char* colour_of(double median, const ViolinGrid& grid) {
  return median > grid.high ? "#d9544d" : (median < grid.low ? "#4a7fc1" : "#ecc94b");
}

void draw_violin(Svg& svg, const ViolinGrid& grid, const Distribution& cell, double centre, const Axis& y) {
  const Points density = density_of(cell);
  if (density.empty()) return;
  const auto height = [&](double value) { return y.at(grid.factor * value); };
  const char* const colour = colour_of(grid.factor * cell.quantile(0.5), grid);
  double most = 0;
  for (const auto& [value, width] : density) most = std::max(most, width);
  const double half = kColumn / 2 - 4;
  Points outline;
  for (const auto& [value, width] : density) outline.emplace_back(centre - half * width / most, height(value));
  for (auto at = density.rbegin(); at != density.rend(); ++at) {
    outline.emplace_back(centre + half * at->second / most, height(at->first));
  }
  if (density.size() > 1) svg.polygon(outline, colour);
  // Quartiles as a bar, the median as a line across.
  svg.line({centre, height(cell.quantile(0.25))}, {centre, height(cell.quantile(0.75))}, {"#222222", 3});
  const double median = height(cell.quantile(0.5));
  // White, except on a violin that is lower than the line itself, which the line would hide.
  const bool tall = height(density.front().first) - height(density.back().first) > 6;
  svg.line({centre - 9, median}, {centre + 9, median}, {tall ? "#ffffff" : colour, 2});
  svg.line({centre - 9, median + 1}, {centre + 9, median + 1}, {"#222222", 0.5});
}

std::string title_of(const ViolinGrid& grid) {
  return fmt::format("{} ({})", grid.title, grid.unit);
}

std::string colours_of(const ViolinGrid& grid) {
  return fmt::format("median above {0:.3g} red, below {1:.3g} blue, between yellow", grid.high, grid.low);
}

// The width of a grid including its titles, which are wider than a few heads.
double grid_width(const ViolinGrid& grid) {
  return std::max(
      {kColumn * static_cast<double>(grid.columns), width_of(title_of(grid), 12), width_of(colours_of(grid), 10)});
}

void draw_grid(Svg& svg, const ViolinGrid& grid, double left) {
  svg.text(left, 46, title_of(grid), Anchor::start, 12);
  svg.text(left, 61, colours_of(grid), Anchor::start, 10);
  for (std::int64_t row = 0; row < grid.rows; ++row) {
    const double top = kTop + kRow * static_cast<double>(row);
    const Axis y{0, grid.upper, top + kPlot, top};
    const double end = left + kColumn * static_cast<double>(grid.columns);
    for (const double tick : y.ticks(3)) {
      svg.line({left, y.at(tick)}, {end, y.at(tick)}, {"#e3e3e3"});
      svg.text(left - 5, y.at(tick) + 4, fmt::format("{:.3g}", tick), Anchor::end, 9);
    }
    svg.line({left, y.from}, {end, y.from}, {"#333333"});
    svg.line({left, y.from}, {left, y.to}, {"#333333"});
    svg.vertical_text(left - 46, top + kPlot / 2, fmt::format("layer {}", grid.first_row + row));
    svg.vertical_text(left - 32, top + kPlot / 2, grid.axis);
    for (std::int64_t column = 0; column < grid.columns; ++column) {
      const double centre = left + kColumn * (static_cast<double>(column) + 0.5);
      draw_violin(svg, grid, grid.cell(row, column), centre, y);
      svg.text(centre, y.from + 12, grid.label(row, column), Anchor::middle, 9);
    }
  }
}

}  // namespace

Points density_of(const Distribution& cell) {
  if (cell.count() == 0 || cell.bins().empty()) return {};
  const double width = cell.upper() / kBins, least = cell.least(), largest = std::min(cell.largest(), cell.upper());
  if (largest - least < width / 8) return {{least, 1}};
  // Values within a bin are indistinguishable, so the bandwidth is at least half a bin.
  const double count = static_cast<double>(cell.count());
  const double bandwidth = std::max(1.06 * std::sqrt(cell.variance()) * std::pow(count, -0.2), width / 2);
  Points points;
  for (int place = 0; place < kPlaces; ++place) {
    const double value = least + (largest - least) * place / (kPlaces - 1);
    double sum = 0;
    for (std::size_t bin = 0; bin < cell.bins().size(); ++bin) {
      if (cell.bins()[bin] == 0) continue;
      const double away = (value - (static_cast<double>(bin) + 0.5) * width) / bandwidth;
      sum += cell.bins()[bin] * std::exp(-0.5 * away * away);
    }
    points.emplace_back(value, sum);
  }
  return points;
}

std::string drawn(const std::string& title, const std::vector<ViolinGrid>& grids) {
  const std::string legend = "below: head; bar: quartiles; line: median; width: density of the tokens' values";
  double width = 0, rows = 0;
  for (const ViolinGrid& grid : grids) {
    width += kLeft + grid_width(grid);
    rows = std::max(rows, static_cast<double>(grid.rows));
  }
  width = std::max({width, width_of(title, 14), kLeft + width_of(legend, 11)});
  Svg svg(width + 20, kTop + kRow * rows + kBottom);
  svg.text(12, 22, title, Anchor::start, 14);
  double left = kLeft;
  for (const ViolinGrid& grid : grids) {
    draw_grid(svg, grid, left);
    svg.text(left + kColumn * static_cast<double>(grid.columns) / 2, kTop + kRow * rows + 8, "head", Anchor::middle);
    left += kLeft + grid_width(grid);
  }
  svg.text(kLeft, kTop + kRow * rows + 28, legend);
  return svg.finish();
}

}  // namespace etc::analyze
