// SVG text: shapes in pixels, and line plots with axes.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace etc::analyze {

using Points = std::vector<std::pair<double, double>>;

enum class Anchor { start, middle, end };

class Svg {
 public:
  Svg(double width, double height);
  void rectangle(double x, double y, double width, double height, const std::string& fill);
  void line(std::pair<double, double> from, std::pair<double, double> to, const std::string& colour, double width = 1);
  void polygon(const Points& points, const std::string& fill);
  void polyline(const Points& points, const std::string& colour);
  void text(double x, double y, const std::string& words, Anchor anchor = Anchor::start, double size = 11);
  // Text that reads from bottom to top.
  void vertical_text(double x, double y, const std::string& words);
  std::string finish() const { return text_ + "</svg>\n"; }

 private:
  std::string text_;
};

// Maps a range of values to a range of pixels.
struct Axis {
  double least = 0, largest = 1, from = 0, to = 1;
  double at(double value) const { return from + (value - least) / (largest - least) * (to - from); }
  // Round numbers within the range, about `count` of them and at least `least_step` apart.
  std::vector<double> ticks(int count, double least_step = 0) const;
};

struct Series {
  std::string name;
  Points points;  // nan: a gap
};

struct LinePlot {
  std::string title, x_label, y_label;
  std::vector<Series> series;
  bool from_zero = true;  // of the y axis
  bool whole_x = true;    // x is an integer (layers, labels, tokens)
};

// An upper bound for the width of a text of this size in pixels, since fonts differ between browsers.
double width_of(const std::string& words, double size);

// The plot as a complete SVG file.
std::string drawn(const LinePlot& plot);

// The n-th of `count` colours; a scale from dark blue to yellow for many ordered series, such as layers.
std::string series_colour(std::size_t n, std::size_t count);

}  // namespace etc::analyze
