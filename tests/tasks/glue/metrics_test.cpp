// Metrics against the golden ones and the worked numbers.
#include "tasks/glue/metrics.h"

#include <cmath>

#include "etc_core/base/json.h"
#include "tests/support/catch.h"
#include "tests/support/golden_h5.h"
#include "tests/tasks/golden_named.h"

using namespace etc;
using namespace etc::glue;

namespace {

// nan, the correlation with a constant side, equals nan.
bool same(double ours, double golden) {
  return std::isnan(golden) ? std::isnan(ours) : std::abs(ours - golden) < 1e-12;
}

void compare_case(const test::GoldenFile& file, const std::string& group) {
  const auto value = [&](const char* name) { return file.read<double>(group + "/" + name).values.at(0); };
  if (file.has(group + "/pearson")) {
    const auto labels = file.read<double>(group + "/labels").values;
    const auto predictions = file.read<double>(group + "/predictions").values;
    CHECK(same(pearson(labels, predictions), value("pearson")));
    CHECK(same(spearman(labels, predictions), value("spearman")));
    return;
  }
  const auto labels = file.read<std::int64_t>(group + "/labels").values;
  const auto predictions = file.read<std::int64_t>(group + "/predictions").values;
  CHECK(same(accuracy(labels, predictions), value("accuracy")));
  CHECK(same(matthews(labels, predictions), value("matthews")));
  if (file.has(group + "/f1")) CHECK(same(f1(labels, predictions), value("f1")));
}

// The rows' names and scores are stored in the attributes.
double overall_of(const test::GoldenFile& file, const std::string& name) {
  std::map<std::string, std::vector<double>> rows;
  const Json scores = Json::parse(file.string_attribute(name, "scores"));
  std::string names = file.string_attribute(name, "rows") + " ";
  for (const Json& score : scores) {
    const std::size_t end = names.find(' ');
    rows[names.substr(0, end)] = score.is_array() ? score.get<std::vector<double>>() : std::vector{score.get<double>()};
    names.erase(0, end + 1);
  }
  return nine_row_overall(rows);
}

}  // namespace

TEST_CASE("GLUE metrics and the nine-row overall equal the golden ones", "[glue][golden]") {
  std::int64_t cases = 0;
  for (const auto& path : test::golden_named("dense_reference", ".h5")) {
    const test::GoldenFile file(path);
    if (!file.has("glue_metrics")) continue;
    for (const std::string& name : file.groups("glue_metrics")) {
      CAPTURE(name);
      ++cases;
      if (name != "overall") {
        compare_case(file, "glue_metrics/" + name);
        continue;
      }
      for (const std::string& model : file.data_sets("glue_metrics/overall")) {
        const std::string group = "glue_metrics/overall/" + model;
        CHECK(std::abs(overall_of(file, group) - file.read<double>(group).values[0]) < 1e-9);
      }
    }
    file.require_all_read("glue_metrics");
  }
  if (cases == 0) test::skip("no golden GLUE metrics");
}

TEST_CASE("a correlation that is nan equals only nan", "[glue]") {
  CHECK(same(NAN, NAN));
  CHECK(!same(0, NAN));
  CHECK(!same(NAN, 0));
  CHECK(same(1, 1 + 1e-15));
}

TEST_CASE("metrics give the worked numbers", "[glue]") {
  // TP 6, TN 3, FP 1, FN 2.
  const std::vector<std::int64_t> labels = {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0};
  const std::vector<std::int64_t> predictions = {1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 1};
  CHECK(accuracy(labels, predictions) == 0.75);
  CHECK(f1(labels, predictions) == 0.8);
  CHECK(matthews(labels, predictions) == Approx(0.478091).margin(1e-6));
  const std::vector<double> gold = {1, 2, 2, 4, 5}, scores = {2, 1, 3, 3, 5};
  CHECK(pearson(gold, scores) == Approx(0.800095).margin(1e-6));
  CHECK(spearman(gold, scores) == Approx(0.763158).margin(1e-6));
}

TEST_CASE("metrics of constant predictions are 0, correlations are nan", "[glue]") {
  const std::vector<std::int64_t> labels = {0, 1, 0}, none = {0, 0, 0};
  CHECK(f1(labels, none) == 0);
  CHECK(matthews(labels, none) == 0);
  const std::vector<double> gold = {1, 2, 3}, constant = {2, 2, 2};
  CHECK(std::isnan(pearson(gold, constant)));
  CHECK(std::isnan(spearman(constant, gold)));
}

TEST_CASE("the overall score names rows that are missing or unknown", "[glue]") {
  std::map<std::string, std::vector<double>> rows = {{"MNLI-m", {1}}, {"MNLI-mm", {1}}, {"QQP", {1}},
                                                     {"QNLI", {1}},   {"SST-2", {1}},   {"CoLA", {1}},
                                                     {"STS-B", {1}},  {"MRPC", {1}},    {"RTE", {10}}};
  CHECK(nine_row_overall(rows) == 2);
  rows["WNLI"] = {1};
  CHECK_THROWS_WITH(nine_row_overall(rows), Catch::Contains("WNLI is none of them"));
  rows.erase("QQP");
  CHECK_THROWS_WITH(nine_row_overall(rows), Catch::Contains("QQP is missing"));
}
