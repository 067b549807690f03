// etc benchmark: the number types a processor supports, the lengths and scores a model supports, and the messages for
// unsupported ones.
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "etc_core/base/files.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/xml.h"
#include "tests/tasks/train/program.h"
#include "tests/tasks/train/tiny_training.h"

using namespace etc;
using Catch::Contains;

namespace {

// A tiny benchmark on a processor limited to `level`.
test::Result benchmark(const std::string& compute, const char* level = "avx2") {
  const test::TemporaryFolder folder;
  ::setenv("ETC_MAX_CPU", level, 1);
  const test::Result result = test::run_program(
      {"benchmark", "--preset", "tiny", "--lengths", "64", "--repeats", "1", "--residual", "off", "--compute", compute},
      folder.path());
  ::unsetenv("ETC_MAX_CPU");
  return result;
}

// A tiny dense model of 64 positions measured; fields: more keys of its configuration; more: options.
test::Result benchmark_dense(const std::string& fields, const test::Words& more, int layers = 2) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "c.json",
                   R"({"model": {"kind": "dense", "vocab_size": 50, "hidden_size": 16,
                            "num_attention_heads": 2, "intermediate_size": 32, "attention_probs_dropout_prob": 0,
                            "max_absolute_position_embeddings": 64, "num_hidden_layers": )" +
                       std::to_string(layers) + fields + "}}");
  return test::run_program(
      test::joined({"benchmark", "--config", folder / "c.json", "--repeats", "1", "--threads", "1"}, more),
      folder.path());
}

constexpr const char* kPerformer = R"(, "attention": "performer", "performer_features": 8)";
constexpr const char* kBigBird = R"(, "attention": "bigbird", "bigbird_block_size": 2, "bigbird_per_layer": true)";

// Rows of a benchmark's table: a value for each column.
std::vector<std::map<std::string, std::string>> table_of(const std::string& csv) {
  std::istringstream lines(csv);
  std::string line, word;
  std::vector<std::string> names;
  std::vector<std::map<std::string, std::string>> rows;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::vector<std::string> all;
    while (std::getline(words, word, ',')) all.push_back(word);
    if (names.empty()) {
      names = all;
      continue;
    }
    rows.emplace_back();
    for (std::size_t n = 0; n < all.size(); ++n) rows.back()[names.at(n)] = all[n];
  }
  return rows;
}

// A point of a picture with logarithmic axes, as a reader finds it by the labels.
struct Mark {
  double x, y;
  bool hollow;
};

std::vector<Mark> marks_of(const std::string& svg) {
  struct Scale {
    std::map<double, double> labels;  // pixel, logarithm
    double at(double pixel) const {
      const auto [first, least] = *labels.begin();
      const auto [last, most] = *labels.rbegin();
      return std::exp(least + (pixel - first) / (last - first) * (most - least));
    }
  };
  Scale x, y;
  std::vector<Mark> marks;
  const std::vector<test::XmlElement> elements = test::xml_elements(svg);
  for (const test::XmlElement& element : elements) {
    if (element.name != "text" || element.text.find_first_not_of("0123456789.,e-+") != std::string::npos) continue;
    std::string digits = element.text;
    std::erase(digits, ',');
    const bool of_y = element.attributes.at("text-anchor") == "end";
    const double pixel = std::stod(element.attributes.at(of_y ? "y" : "x")) - (of_y ? 4 : 0);  // above the baseline
    (of_y ? y : x).labels[pixel] = std::log(std::stod(digits));
  }
  REQUIRE((x.labels.size() > 1 && y.labels.size() > 1));
  for (const test::XmlElement& element : elements) {
    if (element.name != "circle") continue;
    const double cx = std::stod(element.attributes.at("cx")), cy = std::stod(element.attributes.at("cy"));
    if (cx > x.labels.rbegin()->first + 1) continue;  // of the key
    marks.push_back({x.at(cx), y.at(cy), element.attributes.at("fill") == "none"});
  }
  return marks;
}

}  // namespace

TEST_CASE("the pictures of a benchmark show its table, and forecasts where nothing was measured", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::TemporaryFolder folder;
  const test::Result result =
      test::run_program({"benchmark", "--preset", "tiny", "--residual", "sum", "--lengths", "64,32,4096",
                         "--memory-limit", "43MB", "--repeats", "1", "--threads", "1", "--output", folder / "sweep"},
                        folder.path());
  CAPTURE(result.err, result.out);
  REQUIRE(result.code == 0);
  CHECK_THAT(result.out, Contains("4096") && Contains("does not fit"));
  const auto rows = table_of(read_file(folder / "sweep/benchmark.csv"));
  REQUIRE(rows.size() == 2);
  for (const auto& [file, column, forecast] :
       {std::tuple("sweep/time.svg", "seconds", "forecast_seconds"), {"sweep/memory.svg", "peak_mb", "forecast_mb"}}) {
    const std::string svg = read_file(folder / file);
    CAPTURE(svg);
    CHECK_THAT(svg, Contains(">residual scores sum, measured<") && Contains(">residual scores sum, forecast<"));
    const std::vector<Mark> marks = marks_of(svg);
    // Forecasts come first, each kind by its length; the table has the order of the command line.
    REQUIRE(marks.size() == 5);
    for (std::size_t n = 0; n < 5; ++n) {
      CHECK(marks[n].hollow == (n < 3));
      CHECK(marks[n].x == Approx(n % 3 == 0 ? 32 : n % 3 == 1 ? 64 : 4096).epsilon(0.02));
      if (n == 2) continue;
      const auto& row = rows[n % 3 == 0 ? 1 : 0];
      CHECK(marks[n].y == Approx(std::stod(row.at(n < 3 ? forecast : column))).epsilon(0.02));
    }
    CHECK(marks[2].y > marks[1].y);
  }
  // Nothing fits: the pictures have the forecast alone.
  const test::Result none =
      test::run_program({"benchmark", "--preset", "tiny", "--residual", "sum", "--lengths", "4096", "--memory-limit",
                         "43MB", "--threads", "1", "--output", folder / "sweep"},
                        folder.path());
  CAPTURE(none.err);
  REQUIRE(none.code == 0);
  CHECK(table_of(read_file(folder / "sweep/benchmark.csv")).empty());
  CHECK_THAT(read_file(folder / "sweep/memory.svg"),
             Contains(">residual scores sum, forecast<") && !Contains("measured"));
}

TEST_CASE("benchmark leaves out the number types that the processor does not offer, and says so", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::Result result = benchmark("bf16,int8,fp32");
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  CHECK_THAT(result.err, Contains("--compute bf16: left out"));
  CHECK_THAT(result.out, Contains("int8") && Contains("fp32") && !Contains("bf16"));
}

TEST_CASE("a number type that the processor does not offer is a usage error with advice that the command takes",
          "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::Result bf16 = benchmark("bf16");
  CHECK(bf16.code == 2);
  CHECK_THAT(bf16.err, Contains("this processor (x86-64 avx2) has no bf16 products") && Contains("use fp32 or auto"));
  const test::Result automatic = benchmark("auto");
  CAPTURE(automatic.err);
  CHECK(automatic.code == 0);
  CHECK_THAT(automatic.out, Contains("fp32"));
}

TEST_CASE("a forecast ends at a stop signal before its length is done", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::TemporaryFolder folder;
  for (const int signal : {SIGINT, SIGTERM}) {
    // The slice of this one length takes minutes in training, the counting as well.
    test::Child child({*test::program(), "benchmark", "--preset", "small", "--mode", "train", "--residual", "sum",
                       "--lengths", "1048576", "--forecast", "--threads", "1"},
                      folder / "forecast");
    child.run_until([&] { return child.catches(SIGTERM) && !read_file(folder / "forecast.err").empty(); });
    child.send(signal);
    const auto start = std::chrono::steady_clock::now();
    CHECK(child.wait() == 1);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
    CHECK_THAT(read_file(folder / "forecast.err"), Contains("etc benchmark: stopped"));
    CHECK(read_file(folder / "forecast.out").empty());
    CHECK_THAT(read_file(folder / "forecast.err"), !Contains("1/1 points"));
  }
}

TEST_CASE("a limit on the processor that is none is a usage error", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::Result result = benchmark("fp32", "avx3");
  CHECK(result.code == 2);
  CHECK_THAT(result.err, Contains("ETC_MAX_CPU: expected avx2, avx512 or amx, got avx3"));
}

TEST_CASE("benchmark leaves out lengths beyond the model's positions, and refuses to measure none", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::Result result = benchmark_dense("", {"--residual", "off", "--lengths", "32,64,65,512"});
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  CHECK_THAT(result.err,
             Contains("--lengths 65,512: left out: beyond the model's max_absolute_position_embeddings=64"));
  CHECK_THAT(result.out, Contains("  32 ") && Contains("  64 ") && !Contains("  65 "));
  const test::Result none = benchmark_dense("", {"--lengths", "65,512"});
  CHECK(none.code == 2);
  CHECK_THAT(none.err, Contains("--lengths: expected one of at most max_absolute_position_embeddings=64, got 65,512"));
}

TEST_CASE(
    "benchmark leaves out usual kinds of scores that the model refuses, and refuses those that are named before "
    "it computes",
    "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::Result usual = benchmark_dense(kBigBird, {"--lengths", "32"});
  CAPTURE(usual.err);
  REQUIRE(usual.code == 0);
  CHECK_THAT(usual.err, Contains("--residual sum: left out: config: "));
  CHECK_THAT(usual.out, Contains(" off ") && !Contains(" sum "));
  const test::Result named = benchmark_dense(kBigBird, {"--lengths", "32", "--residual", "off,sum"});
  CAPTURE(named.err);
  CHECK(named.code == 2);
  CHECK_THAT(named.err, Contains("etc benchmark: --residual sum: config: ") && !Contains("forecast"));
  const test::Result linear = benchmark_dense(kPerformer, {"--lengths", "32"});
  CHECK(linear.code == 0);
  CHECK_THAT(linear.out, Contains(" off ") && Contains(" sum "));
}

TEST_CASE("benchmark measures models whose sub-layers have an order of their own", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::Result result =
      benchmark_dense(R"(, "sublayer_order": "sssfsfsffsff")", {"--residual", "off", "--lengths", "32"}, 6);
  CAPTURE(result.err);
  CHECK(result.code == 0);
}

TEST_CASE("benchmark takes one global token where a block would be longer than the input", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::TemporaryFolder folder;
  const test::Result result = test::run_program({"benchmark", "--preset", "tiny", "--residual", "off", "--lengths",
                                                 "64", "--tokens-per-global", "9223372036854775807", "--forecast"},
                                                folder.path());
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  CHECK_THAT(result.out, Contains("      64      1 "));
}

TEST_CASE("the memory of a short input is its own, measured beside a long one or alone", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  // Long enough for buffers of more than a megabyte, which are kept for reuse.
  const auto peak_of_first = [](const std::string& lengths) {
    const test::TemporaryFolder folder;
    const test::Result result =
        test::run_program({"benchmark", "--preset", "tiny", "--residual", "off", "--compute", "fp32", "--mode", "train",
                           "--repeats", "1", "--lengths", lengths, "--output", folder / "sweep", "--threads", "1"},
                          folder.path());
    CAPTURE(result.err);
    REQUIRE(result.code == 0);
    std::ifstream table(folder / "sweep/benchmark.csv");
    std::string header, number;
    std::getline(table, header);
    CHECK_THAT(header, Contains("tokens_per_second,peak_mb,"));
    for (int column = 0; column < 7; ++column) std::getline(table, number, ',');
    return std::stod(number);
  };
  CHECK(peak_of_first("128,2048") < 1.3 * peak_of_first("128"));
}
