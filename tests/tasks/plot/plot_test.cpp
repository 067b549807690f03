// Axes and line plots: ticks, places of points, marks, keys, and values that cannot be shown.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tasks/plot/axis.h"
#include "tasks/plot/line_plot.h"
#include "tests/support/catch.h"
#include "tests/support/xml.h"

namespace etc::plot {
namespace {

using test::XmlElement;
using Elements = std::vector<XmlElement>;

double number(const XmlElement& element, const std::string& attribute) {
  return std::stod(element.attributes.at(attribute));
}

Elements named(const Elements& all, const std::string& name) {
  Elements some;
  std::copy_if(all.begin(), all.end(), std::back_inserter(some), [&](const auto& e) { return e.name == name; });
  return some;
}

// The only text of these words.
XmlElement text_of(const Elements& all, const std::string& words) {
  Elements texts = named(all, "text");
  std::erase_if(texts, [&](const XmlElement& e) { return e.text != words; });
  CAPTURE(words);
  REQUIRE(texts.size() == 1);
  return texts.front();
}

std::size_t count_texts(const Elements& all, const std::string& words) {
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [&](const XmlElement& e) { return e.text == words; }));
}

LinePlot logarithmic_plot(std::vector<Series> series, std::vector<double> x_ticks) {
  LinePlot plot{"title", "x", "y", std::move(series)};
  plot.logarithmic_x = plot.logarithmic_y = true;
  plot.x_ticks = std::move(x_ticks);
  return plot;
}

// Checks that the document is well-formed and that every shape lies in the picture.
Elements read(const std::string& picture) {
  Elements all = test::xml_elements(picture);
  REQUIRE(all.front().name == "svg");
  const double width = number(all.front(), "width"), height = number(all.front(), "height");
  for (const XmlElement& element : all) {
    for (const auto& [key, most] : {std::pair("x", width),
                                    {"cx", width},
                                    {"x1", width},
                                    {"x2", width},
                                    {"y", height},
                                    {"cy", height},
                                    {"y1", height},
                                    {"y2", height}}) {
      if (!element.attributes.contains(key)) continue;
      CAPTURE(element.name, key);
      CHECK((number(element, key) >= 0 && number(element, key) <= most));
    }
  }
  return all;
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST_CASE("axes have round ticks within their range, whole ones where nothing stands between", "[plot]") {
  CHECK(Axis{0, 6.24, 0, 1}.ticks(6) == std::vector<double>{0, 2, 4, 6});
  CHECK(Axis{-0.5, 0.5, 0, 1}.ticks(4).size() == 3);
  CHECK(Axis{0, 1, 0, 1}.ticks(8, 1) == std::vector<double>{0, 1});
  // Adding up steps would give -3e-17 instead of 0, which would be drawn as -0.
  const std::vector<double> ticks = Axis{-0.3, 0.3, 0, 1}.ticks(6);
  CHECK((ticks.size() == 7 && ticks[3] == 0 && !std::signbit(ticks[3])));
}

TEST_CASE("logarithmic axes have 1, 2 and 5 of each power of ten, or powers alone over many", "[plot]") {
  const Axis axis{0.1, 1000, 100, 500, true};
  CHECK(axis.at(0.1) == 100);
  CHECK(axis.at(10) == Approx(300));
  CHECK(axis.at(std::sqrt(10)) == Approx(250));
  CHECK(axis.at(1000) == 500);
  CHECK(Axis{50, 500, 0, 1, true}.ticks(6) == std::vector<double>{50, 100, 200, 500});
  CHECK(Axis{0.5, 20000, 0, 1, true}.ticks(6) == std::vector<double>{1, 10, 100, 1000, 10000});
  const std::vector<double> many = Axis{1e-300, 1e300, 0, 1, true}.ticks(6);
  CHECK((many.size() > 5 && many.size() < 10));
}

TEST_CASE("a logarithmic range reaches beyond its values to round numbers", "[plot]") {
  CHECK(round_range(3.1, 3.3) == std::pair(2.0, 5.0));
  CHECK(round_range(2, 2) == std::pair(1.0, 5.0));
  CHECK(round_range(1, 100) == std::pair(0.5, 200.0));
  CHECK(round_range(55.3, 273.6) == std::pair(50.0, 500.0));
  CHECK(round_range(0.0044, 0.85) == std::pair(0.002, 1.0));
}

TEST_CASE("labels of ticks are short", "[plot]") {
  CHECK(tick_text(16384) == "16,384");
  CHECK(tick_text(-50) == "-50");
  CHECK(tick_text(0) == "0");
  CHECK(tick_text(0.05) == "0.05");
  CHECK(tick_text(1e12) == "1e+12");
}

TEST_CASE("points lie where logarithmic axes say", "[plot]") {
  Series series{"of one", {{512, 1}, {1024, 10}, {2048, 100}}};
  series.marks = Marks::filled;
  const Elements all = read(drawn(logarithmic_plot({series}, {512, 1024, 2048})));
  const Elements circles = named(all, "circle");
  REQUIRE(circles.size() == 4);  // and one of the key
  const char* const x[] = {"512", "1,024", "2,048"};
  const char* const y[] = {"1", "10", "100"};
  for (std::size_t n = 0; n < 3; ++n) {
    CHECK(number(circles[n], "cx") == Approx(number(text_of(all, x[n]), "x")).margin(0.2));
    CHECK(number(circles[n], "cy") == Approx(number(text_of(all, y[n]), "y") - 4).margin(0.2));  // a label's baseline
  }
  // Equal factors are equal distances, and more is higher.
  CHECK(number(circles[1], "cx") == Approx((number(circles[0], "cx") + number(circles[2], "cx")) / 2).margin(0.2));
  CHECK(number(circles[1], "cy") == Approx((number(circles[0], "cy") + number(circles[2], "cy")) / 2).margin(0.2));
  CHECK(number(circles[2], "cy") < number(circles[0], "cy"));
  const Elements lines = named(all, "polyline");
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].attributes.at("points").starts_with(circles[0].attributes.at("cx") + "," +
                                                     circles[0].attributes.at("cy") + " "));
}

TEST_CASE("series differ in colour, dash and mark, and the key says the same", "[plot]") {
  Series measured{"measured <1>", {{1, 2}, {2, 3}}}, forecast{"forecast", {{1, 2.5}, {2, 3.5}}}, unnamed{"", {{1, 1}}};
  measured.marks = Marks::filled;
  forecast.marks = Marks::hollow;
  forecast.dash = "5,4";
  measured.colour = forecast.colour = "#123456";
  const Elements all = read(drawn(logarithmic_plot({measured, forecast, unnamed}, {1, 2})));
  const Elements lines = named(all, "polyline"), circles = named(all, "circle");
  REQUIRE(lines.size() == 2);
  CHECK(!lines[0].attributes.contains("stroke-dasharray"));
  CHECK(lines[1].attributes.at("stroke-dasharray") == "5,4");
  CHECK((lines[0].attributes.at("stroke") == "#123456" && lines[1].attributes.at("stroke") == "#123456"));
  REQUIRE(circles.size() == 7);  // two of each and one in the key; a single point
  CHECK((circles[0].attributes.at("fill") == "#123456" && circles[2].attributes.at("fill") == "#123456"));
  CHECK((circles[3].attributes.at("fill") == "none" && circles[5].attributes.at("fill") == "none"));
  // The key is to the right of all points, each name in the row of its mark.
  for (const auto& [name, mark] : {std::pair("measured <1>", 2), {"forecast", 5}}) {
    const XmlElement text = text_of(all, name);
    CHECK(number(text, "x") > number(circles[static_cast<std::size_t>(mark)], "cx"));
    CHECK(number(text, "y") - 4 == Approx(number(circles[static_cast<std::size_t>(mark)], "cy")));
    CHECK(number(circles[static_cast<std::size_t>(mark)], "cx") > number(circles[1], "cx") + 10);
  }
  CHECK(number(text_of(all, "forecast"), "y") > number(text_of(all, "measured <1>"), "y") + 10);
  CHECK((count_texts(all, "title") == 1 && count_texts(all, "x") == 1 && count_texts(all, "y") == 1));
}

TEST_CASE("values that an axis cannot show are gaps", "[plot]") {
  const Series series{"s",
                      {{1, 1}, {2, 2}, {3, 0}, {4, 4}, {5, kNan}, {6, 6}, {7, -1}, {8, 8}, {9, 9}, {10, HUGE_VAL}}};
  const std::string picture = drawn(logarithmic_plot({series}, {}));
  CHECK_THAT(picture, !Catch::Contains("nan") && !Catch::Contains("inf"));
  const Elements all = read(picture);
  CHECK(named(all, "polyline").size() == 2);
  CHECK(named(all, "circle").size() == 2);  // of points without neighbours
  LinePlot linear{"title", "x", "y", {series}};
  CHECK(named(read(drawn(linear)), "polyline").size() == 2);  // 0 and -1 are shown: 1 to 4 and 6 to 9
}

TEST_CASE("one point, equal values, extreme values and no values have pictures", "[plot]") {
  for (const bool logarithmic : {true, false}) {
    for (const Points& points :
         {Points{{64, 3}}, Points{{64, 3}, {64, 3}}, Points{{1, 5}, {2, 5}, {3, 5}}, Points{{1, 1e-9}, {1e12, 1e18}},
          Points{{1, 1e300}, {2, 1e-300}}, Points{{1, 1e305}, {2, 7}}}) {
      LinePlot plot{"title", "x", "y", {{"s", points}}};
      plot.logarithmic_x = plot.logarithmic_y = logarithmic;
      plot.series[0].marks = Marks::filled;
      CAPTURE(logarithmic, points.size(), points[0].second);
      const std::string picture = drawn(plot);
      CHECK_THAT(picture, !Catch::Contains("nan") && !Catch::Contains("inf"));
      CHECK(named(read(picture), "circle").size() >= 2);
      CHECK(named(read(picture), "text").size() >= 5);  // title, two labels, name, ticks
    }
    LinePlot one = logarithmic_plot({{"s", {{64, 3}}}}, {64});  // with the tick of a benchmark of one length
    one.logarithmic_x = one.logarithmic_y = logarithmic;
    CHECK_THAT(drawn(one), !Catch::Contains("nan") && !Catch::Contains("inf"));
    CHECK(count_texts(read(drawn(one)), "64") == 1);
    for (const Points& points : {Points{}, Points{{1, kNan}}}) {
      LinePlot plot{"title", "x", "y", {{"s", points}}};
      plot.logarithmic_x = plot.logarithmic_y = logarithmic;
      CHECK(count_texts(read(drawn(plot)), "no values") == 1);
    }
  }
}

TEST_CASE("a tick's label that would reach into the one before is left out, its line is not", "[plot]") {
  const Elements all = read(drawn(logarithmic_plot({{"s", {{512, 1}, {520, 1}, {65536, 1}}}}, {512, 520, 65536})));
  CHECK((count_texts(all, "512") == 1 && count_texts(all, "520") == 0 && count_texts(all, "65,536") == 1));
  const Elements lines = named(all, "line");
  CHECK(std::count_if(lines.begin(), lines.end(), [](const XmlElement& line) {
          return line.attributes.at("x1") == line.attributes.at("x2") && line.attributes.at("stroke") == "#dddddd";
        }) == 3);
}

TEST_CASE("several plots stand side by side", "[plot]") {
  const LinePlot plots[] = {{"first", "x", "y", {{"key of the first", {{0, 0}, {1, 1}}}}},
                            {"second", "x", "y", {{"key of the second", {{0, 0}, {1, 1}}}}}};
  const Elements all = read(drawn(plots));
  CHECK(number(text_of(all, "second"), "x") > number(text_of(all, "key of the first"), "x") + 90);
  CHECK(number(all.front(), "width") > number(text_of(all, "key of the second"), "x") + 90);
}

TEST_CASE("texts of a plot are escaped, control characters are blanks", "[plot]") {
  const Elements all = read(drawn({"a & b < c > \"d\"\x01", "x", "y", {{"s", {{0, 1}}}}}));
  CHECK(count_texts(all, "a & b < c > \"d\" ") == 1);
}

}  // namespace
}  // namespace etc::plot
