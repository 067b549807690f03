#include "tasks/plot/svg.h"

#include <fmt/format.h>

#include <array>

namespace etc::plot {

namespace {

// Control characters are no characters of XML.
std::string escaped(const std::string& words) {
  std::string text;
  for (const char c : words) {
    if (c == '&') {
      text += "&amp;";
    } else if (c == '<') {
      text += "&lt;";
    } else if (c == '>') {
      text += "&gt;";
    } else if (c == '"') {
      text += "&quot;";
    } else {
      text += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
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

std::string attributes_of(const Stroke& stroke) {
  std::string text = fmt::format("stroke=\"{}\" stroke-width=\"{:.1f}\"", stroke.colour, stroke.width);
  if (!stroke.dash.empty()) text += fmt::format(" stroke-dasharray=\"{}\"", stroke.dash);
  return text;
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

void Svg::line(Point from, Point to, const Stroke& stroke) {
  text_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", from.first, from.second,
                       to.first, to.second, attributes_of(stroke));
}

void Svg::polygon(const Points& points, const std::string& fill) {
  text_ += fmt::format("<polygon points=\"{}\" fill=\"{}\" stroke=\"#333333\" stroke-width=\"0.5\"/>\n", listed(points),
                       fill);
}

void Svg::polyline(const Points& points, const Stroke& stroke) {
  text_ += fmt::format("<polyline points=\"{}\" fill=\"none\" {}/>\n", listed(points), attributes_of(stroke));
}

void Svg::circle(Point centre, double radius, const std::string& fill, const Stroke& stroke) {
  text_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\" {}/>\n", centre.first,
                       centre.second, radius, fill, attributes_of(stroke));
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

double width_of(const std::string& words, double size) {
  return 0.6 * size * static_cast<double>(words.size());
}

std::string series_colour(std::size_t n, std::size_t count) {
  // Black, then Okabe and Ito (2008), then darker ones.
  static constexpr std::array<const char*, kDistinctColours> kFew{
      "#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#882255", "#999933", "#777777"};
  if (count <= kFew.size()) return kFew[n];
  const double t = static_cast<double>(n) / static_cast<double>(count - 1);
  return fmt::format("#{:02x}{:02x}{:02x}", static_cast<int>(40 + 200 * t), static_cast<int>(40 + 140 * t),
                     static_cast<int>(120 - 90 * t));
}

}  // namespace etc::plot
