#include "tasks/plot/line_plot.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "tasks/plot/axis.h"

namespace etc::plot {

namespace {

// In pixels. The key lists the series to the right of the plot.
constexpr double kWidth = 520, kHeight = 420, kTop = 40, kBottom = 50, kTitle = 14, kWords = 11;
constexpr double kLabel = 34, kTickGap = 6, kKeyGap = 14, kKeyLine = 36, kKeyWords = 8, kKeyRow = 17, kEdge = 12;

constexpr const char* kFrame = "#333333";
constexpr const char* kGrid = "#dddddd";

// The smallest and largest of the values to be drawn.
struct Range {
  double least = HUGE_VAL, most = -HUGE_VAL;
  void add(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  bool empty() const { return !(most >= least); }
};

// A plot and its place in the picture.
struct Panel {
  const LinePlot* plot;
  Axis x, y;
  std::vector<double> x_ticks = {}, y_ticks = {};
  double left = 0, width = 0;
  bool empty = false;
};

bool drawable(const LinePlot& plot, const Point& point) {
  return can_show(point.first, plot.logarithmic_x) && can_show(point.second, plot.logarithmic_y);
}

// The ranges of both axes. One without extent is widened, so that its only value lies inside.
void set_ranges(Panel& panel) {
  const LinePlot& plot = *panel.plot;
  Range x, y;
  for (const Series& series : plot.series) {
    for (const Point& point : series.points) {
      if (!drawable(plot, point)) continue;
      x.add(point.first);
      y.add(point.second);
    }
  }
  panel.empty = y.empty();
  if (panel.empty) return;
  if (plot.from_zero && !plot.logarithmic_y) y.add(0);
  for (const double tick : plot.x_ticks) {
    if (can_show(tick, plot.logarithmic_x)) x.add(tick);
  }
  panel.x = {x.least, x.most, 0, 0, plot.logarithmic_x};
  panel.y = {y.least, y.most, 0, 0, plot.logarithmic_y};
  if (plot.logarithmic_x) {
    const double margin = x.most == x.least ? 2 : std::pow(x.most / x.least, 0.04);
    std::tie(panel.x.least, panel.x.largest) =
        plot.x_ticks.empty() ? round_range(x.least, x.most) : std::pair(x.least / margin, x.most * margin);
  } else if (x.most == x.least) {
    panel.x.least -= 0.5;
    panel.x.largest += 0.5;
  }
  if (plot.logarithmic_y) {
    std::tie(panel.y.least, panel.y.largest) = round_range(y.least, y.most);
  } else {
    if (y.most == y.least) panel.y.largest += 1;
    panel.y.largest += 0.05 * (panel.y.largest - panel.y.least);
  }
  panel.x_ticks = plot.x_ticks.empty() ? panel.x.ticks(8, plot.whole_x ? 1 : 0) : plot.x_ticks;
  panel.y_ticks = panel.y.ticks(6);
}

// Places the panel's axes, wide enough for its texts.
void place(Panel& panel, double left, double height) {
  double ticks = 0, names = 0;
  for (const double tick : panel.y_ticks) ticks = std::max(ticks, width_of(tick_text(tick), kWords));
  for (const Series& series : panel.plot->series) names = std::max(names, width_of(series.name, kWords));
  const double from = left + kLabel + ticks + kTickGap;
  const double key = names > 0 ? kKeyGap + kKeyLine + kKeyWords + names : 0;
  panel.x.from = from;
  panel.x.to = from + kWidth;
  panel.y.from = height - kBottom;
  panel.y.to = kTop;
  panel.left = left;
  panel.width = std::max(panel.x.to + key, from + width_of(panel.plot->title, kTitle)) + kEdge - left;
}

void draw_axes(Svg& svg, const Panel& panel) {
  const auto& [x, y] = std::tie(panel.x, panel.y);
  for (const double tick : panel.y_ticks) {
    svg.line({x.from, y.at(tick)}, {x.to, y.at(tick)}, {kGrid});
    svg.text(x.from - kTickGap, y.at(tick) + 4, tick_text(tick), Anchor::end, kWords);
  }
  double end = -HUGE_VAL;  // of the label before: one that would reach into it is left out
  for (const double tick : panel.x_ticks) {
    svg.line({x.at(tick), y.from}, {x.at(tick), y.to}, {kGrid});
    svg.line({x.at(tick), y.from}, {x.at(tick), y.from + 4}, {kFrame});
    const double half = width_of(tick_text(tick), kWords) / 2;
    if (x.at(tick) - half < end + kTickGap) continue;
    svg.text(x.at(tick), y.from + 17, tick_text(tick), Anchor::middle, kWords);
    end = x.at(tick) + half;
  }
  svg.line({x.from, y.from}, {x.to, y.from}, {kFrame});
  svg.line({x.from, y.from}, {x.from, y.to}, {kFrame});
  svg.text((x.from + x.to) / 2, y.from + kBottom - 12, panel.plot->x_label, Anchor::middle, kWords);
  svg.vertical_text(panel.left + 18, (y.from + y.to) / 2, panel.plot->y_label);
}

void draw_mark(Svg& svg, const Point& at, Marks marks, const std::string& colour) {
  if (marks == Marks::hollow) svg.circle(at, 4.5, "none", {colour, 1.2});
  if (marks == Marks::filled) svg.circle(at, 2.5, colour, {colour});
}

// Lines between neighbours; a point between two gaps has a mark in any case.
void draw_points(Svg& svg, const Panel& panel, const Series& series, const std::string& colour) {
  Points connected;
  const auto draw = [&] {
    const bool alone = connected.size() == 1 && series.marks == Marks::none;
    if (connected.size() > 1) svg.polyline(connected, {colour, series.width, series.dash});
    for (const Point& at : connected) draw_mark(svg, at, alone ? Marks::filled : series.marks, colour);
    connected.clear();
  };
  for (const Point& point : series.points) {
    if (drawable(*panel.plot, point)) {
      connected.emplace_back(panel.x.at(point.first), panel.y.at(point.second));
    } else {
      draw();
    }
  }
  draw();
}

void draw_panel(Svg& svg, const Panel& panel) {
  const LinePlot& plot = *panel.plot;
  svg.text(panel.x.from, 22, plot.title, Anchor::start, kTitle);
  if (panel.empty) {
    svg.text((panel.x.from + panel.x.to) / 2, (panel.y.from + panel.y.to) / 2, "no values", Anchor::middle);
    return;
  }
  draw_axes(svg, panel);
  double row = kTop + 10;
  for (std::size_t n = 0; n < plot.series.size(); ++n) {
    const Series& series = plot.series[n];
    const std::string colour = series.colour.empty() ? series_colour(n, plot.series.size()) : series.colour;
    draw_points(svg, panel, series, colour);
    if (series.name.empty()) continue;
    const double from = panel.x.to + kKeyGap, to = from + kKeyLine;
    svg.line({from, row}, {to, row}, {colour, std::max(2.0, series.width), series.dash});
    draw_mark(svg, {(from + to) / 2, row}, series.marks, colour);
    svg.text(to + kKeyWords, row + 4, series.name, Anchor::start, kWords);
    row += kKeyRow;
  }
}

}  // namespace

std::string drawn(const LinePlot& plot) {
  return drawn(std::span(&plot, 1));
}

std::string drawn(std::span<const LinePlot> plots) {
  double height = kHeight, width = 0;
  std::vector<Panel> panels;
  for (const LinePlot& plot : plots) {
    // High enough for the key of many layers.
    height = std::max(height, kTop + kKeyRow * static_cast<double>(plot.series.size() + 1));
    panels.push_back({&plot, {}, {}});
    set_ranges(panels.back());
  }
  for (Panel& panel : panels) {
    place(panel, width, height);
    width += panel.width;
  }
  Svg svg(width, height);
  for (const Panel& panel : panels) draw_panel(svg, panel);
  return svg.finish();
}

}  // namespace etc::plot
