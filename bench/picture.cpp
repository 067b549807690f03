// Draws panels of curves side by side as one SVG file, with the code that draws the pictures of the program. picture.py
// calls it with what its save() writes: curves in JSON on standard input.
//
//   build/cpu/bench_picture <FILE_curves.json >FILE.svg
#include <array>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

#include "bench/bench_main.h"
#include "etc_core/base/json.h"
#include "tasks/plot/line_plot.h"

namespace {

using namespace etc;

std::string standard_input() {
  std::string text;
  char block[65536];
  for (std::size_t got = 0; (got = std::fread(block, 1, sizeof block, stdin)) > 0;) text.append(block, got);
  return text;
}

plot::Series series_of(const Json& curve) {
  static constexpr std::array<const char*, 4> kDashes{"", "9,5", "2,4", "9,4,2,4"};
  plot::Series series{curve.at("label"), {}};
  for (const Json& point : curve.at("points")) series.points.emplace_back(point.at(0), point.at(1));
  series.colour =
      plot::series_colour(curve.at("colour").get<std::size_t>() % plot::kDistinctColours, plot::kDistinctColours);
  series.dash = kDashes[curve.at("dash").get<std::size_t>() % kDashes.size()];
  if (curve.at("bold")) series.width = 3;
  if (curve.at("marks")) series.marks = curve.at("hollow") ? plot::Marks::hollow : plot::Marks::filled;
  return series;
}

plot::LinePlot plot_of(const Json& panel) {
  plot::LinePlot plot{panel.at("title"), panel.at("x"), panel.at("y"), {}};
  const std::string logarithmic = panel.at("logarithmic");
  plot.logarithmic_x = logarithmic.find('x') != std::string::npos;
  plot.logarithmic_y = logarithmic.find('y') != std::string::npos;
  plot.from_zero = panel.at("from_zero");
  plot.x_ticks = panel.at("ticks").get<std::vector<double>>();
  for (const Json& curve : panel.at("curves")) {
    plot.series.push_back(series_of(curve));
    for (const auto& [x, y] : plot.series.back().points) plot.whole_x = plot.whole_x && x == std::round(x);
  }
  return plot;
}

void run() {
  std::vector<plot::LinePlot> plots;
  const Json json = parse_json(standard_input(), "standard input");
  for (const Json& panel : json.at("panels")) plots.push_back(plot_of(panel));
  const std::string picture = plot::drawn(plots);
  if (std::fwrite(picture.data(), 1, picture.size(), stdout) != picture.size() || std::fflush(stdout) != 0)
    fail("bench_picture", "standard output cannot be written");
}

}  // namespace

int main() {
  return bench::bench_main(run);
}
