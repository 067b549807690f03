// SVG text: shapes in pixels.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace etc::plot {

using Point = std::pair<double, double>;
using Points = std::vector<Point>;

enum class Anchor { start, middle, end };

struct Stroke {
  std::string colour;
  double width = 1;
  std::string dash = {};  // lengths of dashes and gaps, "9,5"; "": solid
};

class Svg {
 public:
  Svg(double width, double height);
  void rectangle(double x, double y, double width, double height, const std::string& fill);
  void line(Point from, Point to, const Stroke& stroke);
  void polygon(const Points& points, const std::string& fill);
  void polyline(const Points& points, const Stroke& stroke);
  void circle(Point centre, double radius, const std::string& fill, const Stroke& stroke);
  void text(double x, double y, const std::string& words, Anchor anchor = Anchor::start, double size = 11);
  // Text that reads from bottom to top.
  void vertical_text(double x, double y, const std::string& words);
  std::string finish() const { return text_ + "</svg>\n"; }

 private:
  std::string text_;
};

// An upper bound for the width of a text of this size in pixels, since fonts differ between browsers.
double width_of(const std::string& words, double size);

// So many series have colours that are distinct for all kinds of colour vision.
inline constexpr std::size_t kDistinctColours = 10;

// The n-th of `count` colours; a scale from dark blue to yellow for more than kDistinctColours ordered series, such as
// layers.
std::string series_colour(std::size_t n, std::size_t count);

}  // namespace etc::plot
