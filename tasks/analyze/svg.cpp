#include "tasks/analyze/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace etc::analyze {

namespace {

std::string escaped(const std::string& words) {
  std::string text;
  for (const char c : words) {
    text += c == '&' ? "&amp;" : (c == '<' ? "&lt;" : (c == '>' ? "&gt;" : (c == '"' ? "&quot;" : std::string(1, c))));
  }
  return text;
}

std::string listed(const Points& points) {
  std::string text;
  for (const auto& [x, y] : points) text += fmt::format("{:.1f},{:.1f} ", x, y);
  return text;
}

const char* name_of(Anchor anchor) {
  return anchor == Anchor::start ? "start" : (anchor == Anchor::middle ? "middle" : "end");
}

std::string tick_text(double value) {
  return fmt::format("{:.6g}", value);
}

}  // namespace

Svg::Svg(double width, double height)
    : text_(fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
                        "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\">\n",
                        width, height)) {
  rectangle(0, 0, width, height, "#ffffff");
}

void Svg::rectangle(double x, double y, double width, double height, const std::string& fill) {
  text_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x, y,
                       width, height, fill);
}

void Svg::line(std::pair<double, double> from, std::pair<double, double> to, const std::string& colour, double width) {
  text_ += fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"{:.1f}\"/>\n",
      from.first, from.second, to.first, to.second, colour, width);
}

void Svg::polygon(const Points& points, const std::string& fill) {
  text_ += fmt::format("<polygon points=\"{}\" fill=\"{}\" stroke=\"#333333\" stroke-width=\"0.5\"/>\n", listed(points),
                       fill);
}

void Svg::polyline(const Points& points, const std::string& colour) {
  text_ += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n", listed(points),
                       colour);
}

void Svg::text(double x, double y, const std::string& words, Anchor anchor, double size) {
  text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.0f}\" text-anchor=\"{}\">{}</text>\n", x, y,
                       size, name_of(anchor), escaped(words));
}

void Svg::vertical_text(double x, double y, const std::string& words) {
  text_ += fmt::format(
      "<text x=\"{0:.1f}\" y=\"{1:.1f}\" font-size=\"11\" text-anchor=\"middle\" transform=\"rotate(-90 {0:.1f} "
      "{1:.1f})\">{2}</text>\n",
      x, y, escaped(words));
}

std::vector<double> Axis::ticks(int count, double least_step) const {
  const double range = largest - least;
  const double rough = std::max(range / count, least_step), power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double of : {5.0, 2.0, 1.0}) {
    if (of * power >= rough) step = of * power;
  }
  // Integer multiples of the step: adding steps would give something like -1e-17 instead of 0.
  std::vector<double> all;
  const auto last = static_cast<std::int64_t>(std::floor(largest / step + 1e-9));
  for (auto n = static_cast<std::int64_t>(std::ceil(least / step - 1e-9)); n <= last; ++n)
    all.push_back(static_cast<double>(n) * step);
  return all;
}

double width_of(const std::string& words, double size) {
  return 0.6 * size * static_cast<double>(words.size());
}

std::string series_colour(std::size_t n, std::size_t count) {
  static constexpr std::array<const char*, 6> kFew{"#1f5fa8", "#c23b22", "#2e8b57", "#8a5ab5", "#d98e04", "#555555"};
  if (count <= kFew.size()) return kFew[n];
  const double t = static_cast<double>(n) / static_cast<double>(count - 1);
  return fmt::format("#{:02x}{:02x}{:02x}", static_cast<int>(40 + 200 * t), static_cast<int>(40 + 140 * t),
                     static_cast<int>(120 - 90 * t));
}

namespace {

// Of a line plot, in pixels. The key lists the series to the right of the plot.
constexpr double kPlotLeft = 70, kPlotWidth = 420, kPlotTop = 40, kPlotBottom = 50, kPlotKey = 42, kPlotKeyRow = 16;

// The smallest and largest values of the points to be drawn.
struct PlotRange {
  double least_x = HUGE_VAL, most_x = -HUGE_VAL, least_y = HUGE_VAL, most_y = -HUGE_VAL;
  bool empty() const { return !(most_y >= least_y); }
};

// A range without extent is widened, so that its only value lies inside.
PlotRange range_of(const LinePlot& plot) {
  PlotRange range;
  if (plot.from_zero) range.least_y = 0;
  for (const Series& series : plot.series) {
    for (const auto& [x, y] : series.points) {
      if (std::isnan(y)) continue;
      range.least_x = std::min(range.least_x, x);
      range.most_x = std::max(range.most_x, x);
      range.least_y = std::min(range.least_y, y);
      range.most_y = std::max(range.most_y, y);
    }
  }
  if (range.empty()) return range;
  if (range.most_x == range.least_x) {  // one layer: in the middle
    range.least_x -= 0.5;
    range.most_x += 0.5;
  }
  if (range.most_y == range.least_y) range.most_y = range.least_y + 1;
  return range;
}

void draw_axes(Svg& svg, const LinePlot& plot, const Axis& x, const Axis& y) {
  for (const double tick : y.ticks(6)) {
    svg.line({x.from, y.at(tick)}, {x.to, y.at(tick)}, "#dddddd");
    svg.text(x.from - 6, y.at(tick) + 4, tick_text(tick), Anchor::end);
  }
  for (const double tick : x.ticks(8, plot.whole_x ? 1 : 0)) {
    svg.line({x.at(tick), y.from}, {x.at(tick), y.from + 4}, "#333333");
    svg.text(x.at(tick), y.from + 17, tick_text(tick), Anchor::middle);
  }
  svg.line({x.from, y.from}, {x.to, y.from}, "#333333");
  svg.line({x.from, y.from}, {x.from, y.to}, "#333333");
  svg.text((x.from + x.to) / 2, y.from + kPlotBottom - 12, plot.x_label, Anchor::middle);
  svg.vertical_text(18, (y.from + y.to) / 2, plot.y_label);
}

// Lines between neighbours; a point between two gaps becomes a small square.
void draw_points(Svg& svg, const Points& points, const Axis& x, const Axis& y, const std::string& colour) {
  Points connected;
  const auto draw = [&] {
    if (connected.size() == 1) svg.rectangle(connected[0].first - 2, connected[0].second - 2, 4, 4, colour);
    if (connected.size() > 1) svg.polyline(connected, colour);
    connected.clear();
  };
  for (const auto& [px, py] : points) {
    if (std::isnan(py)) {
      draw();
    } else {
      connected.emplace_back(x.at(px), y.at(py));
    }
  }
  draw();
}

}  // namespace

std::string drawn(const LinePlot& plot) {
  // High enough for the key of many layers.
  const double height = std::max(400.0, kPlotTop + kPlotKeyRow * static_cast<double>(plot.series.size() + 1));
  double names = 100;
  for (const Series& series : plot.series) names = std::max(names, width_of(series.name, 11));
  const double width = std::max(kPlotLeft + kPlotWidth + kPlotKey + names, kPlotLeft + width_of(plot.title, 14));
  Svg svg(width, height);
  svg.text(kPlotLeft, 22, plot.title, Anchor::start, 14);
  const PlotRange range = range_of(plot);
  if (range.empty()) {
    svg.text(width / 2, height / 2, "no values", Anchor::middle);
    return svg.finish();
  }
  const Axis x{range.least_x, range.most_x, kPlotLeft, kPlotLeft + kPlotWidth};
  const Axis y{range.least_y, range.most_y + 0.05 * (range.most_y - range.least_y), height - kPlotBottom, kPlotTop};
  draw_axes(svg, plot, x, y);
  for (std::size_t n = 0; n < plot.series.size(); ++n) {
    const Series& series = plot.series[n];
    const std::string colour = series_colour(n, plot.series.size());
    draw_points(svg, series.points, x, y, colour);
    const double row = kPlotTop + 10 + kPlotKeyRow * static_cast<double>(n);
    svg.line({x.to + 12, row}, {x.to + 30, row}, colour, 2);
    svg.text(x.to + 36, row + 4, series.name);
  }
  return svg.finish();
}

}  // namespace etc::analyze
