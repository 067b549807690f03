// Tests of the comparison with golden files: it must fail if a data set is missing in a file or a number differs.
#include <algorithm>
#include <cmath>
#include <set>

#include "etc_core/base/error.h"
#include "tests/golden/falsified.h"
#include "tests/golden/golden_run.h"
#include "tests/support/catch.h"
#include "tests/support/h5_edit.h"

using namespace etc;
using Catch::Contains;
using test::Falsified;
using test::GoldenCase;
using test::GoldenDifference;
using test::GoldenRun;
using test::GradientDifference;

namespace {

using Expected = std::map<std::string, std::vector<double>>;
using Actual = std::map<std::string, std::vector<float>>;

double worst_of(const Expected& expected, const Actual& actual) {
  GradientDifference difference;
  difference.compare(expected, actual, "");
  return difference.worst.value;
}

// Whether results for the original file are within the tolerances of the changed file.
bool tolerated(const std::filesystem::path& path, const GoldenRun& run, const test::LayerStates& attention) {
  const GoldenCase golden(path);
  GoldenDifference difference;
  difference.compare(golden, run);
  difference.compare_attention(golden, attention);
  if (golden.file.has("grads")) difference.compare_backward(golden, run);
  return difference.tolerated();
}

// The largest compared number of a data set; for scores, only visible pairs are compared.
std::int64_t largest_compared(const GoldenCase& golden, const std::string& name) {
  const auto array = golden.file.read<double>(name);
  const std::size_t at = name.find("scores_");
  std::int64_t largest = -1;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(array.values.size()); ++i) {
    if (at != std::string::npos) {
      const std::int64_t queries = array.shape.at(2), columns = array.shape.at(3);
      const std::int64_t example = i / columns / queries / golden.config.num_attention_heads;
      if (!golden.masks.allowed(name.substr(at + 7), example, i / columns % queries, i % columns)) continue;
    }
    const auto size = [&](std::int64_t j) { return std::abs(array.values[static_cast<std::size_t>(j)]); };
    if (largest < 0 || size(i) > size(largest)) largest = i;
  }
  return largest;
}

// One compared data set of every kind: layers count as one kind, gradients by the last two parts of their names.
std::vector<std::string> one_of_each_kind(const GoldenCase& golden) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const std::string group : {"outputs", "outputs64", "loss", "grads", "grads64"}) {
    for (const std::string& name : test::data_sets_below(golden.file, group)) {
      const std::size_t slash = name.rfind('/'),
                        before = slash == std::string::npos ? slash : name.rfind('/', slash - 1);
      const std::string last = group.substr(0, 5) == "grads" ? name.substr(before == std::string::npos ? 0 : before)
                                                             : name.substr(slash == std::string::npos ? 0 : slash);
      if (name.rfind("W_", 0) == 0) continue;  // makes the gradients, is not compared
      if (test::is_shared_key_bias(name, golden.config.share_kv_projections, golden.config.share_qkv_projections)) {
        continue;  // rounding of a sum that is zero
      }
      if (seen.insert(group + last).second) names.push_back(group + "/" + name);
    }
  }
  return names;
}

}  // namespace

TEST_CASE("a small tensor's gradient is compared with its own size", "[goldens]") {
  const Expected expected = {{"large", {10.0, -3.0}}, {"small", {1e-4, 2e-5}}};
  CHECK(worst_of(expected, {{"large", {10.0f, -3.0f}}, {"small", {1e-4f, 2e-5f}}}) < GradientDifference::kTolerance);
  CHECK(worst_of(expected, {{"large", {10.0f, -3.0f}}, {"small", {1.001e-4f, 2e-5f}}}) == Approx(1e-3).epsilon(0.01));
  CHECK(worst_of(expected, {{"large", {10.0f, -3.003f}}, {"small", {1e-4f, 2e-5f}}}) > GradientDifference::kTolerance);
}

TEST_CASE("a bias whose gradient cancels may hold its terms' rounding and no more", "[goldens]") {
  const Expected expected = {{"key/kernel", {4.0}}, {"key/bias", {2e-8}}};
  CHECK(worst_of(expected, {{"key/kernel", {4.0f}}, {"key/bias", {-1e-6f}}}) < GradientDifference::kTolerance);
  CHECK(worst_of(expected, {{"key/kernel", {4.0f}}, {"key/bias", {8e-6f}}}) > GradientDifference::kTolerance);
  CHECK(worst_of({{"key/bias", {2e-8}}}, {{"key/bias", {-1e-6f}}}) > GradientDifference::kTolerance);
}

TEST_CASE("a gradient that only one side has is an error that names it", "[goldens]") {
  CHECK_THROWS_WITH(worst_of({{"a", {1.0}}}, {{"a", {1.0f}}, {"b", {1.0f}}}), Contains("b: gradient: computed, but"));
  CHECK_THROWS_WITH(worst_of({{"a", {1.0}}, {"b", {1.0}}}, {{"a", {1.0f}}}), Contains("b: gradient: in the golden"));
  CHECK_THROWS_WITH(worst_of({{"a", {1.0, 2.0}}}, {{"a", {1.0f}}}), Contains("expected 2 numbers, got 1"));
}

TEST_CASE("a golden file with a data set removed or a number changed by a thousandth is noticed", "[golden]") {
  int files = 0, data_sets = 0;
  for (const auto& path : test::model_files("etc")) {
    const GoldenCase golden(path);
    // Files of all kinds: gradients in both precisions, with and without scores.
    if (!golden.file.has("grads64")) continue;
    CAPTURE(path.filename().string());
    ++files;
    const GoldenRun run = test::golden_run(golden, golden.config, true);
    const test::LayerStates attention = test::attention_states(golden);
    REQUIRE(tolerated(path, run, attention));
    for (const std::string& name : one_of_each_kind(golden)) {
      CAPTURE(name);
      ++data_sets;
      const Falsified removed(path), changed(path);
      test::H5Edit(removed.path).remove("/" + name);
      CHECK_THROWS_AS(tolerated(removed.path, run, attention), Error);
      test::H5Edit(changed.path).scale_element("/" + name, largest_compared(golden, name), 1.001);
      CHECK_FALSE(tolerated(changed.path, run, attention));
    }
    const Falsified without(path);
    test::H5Edit(without.path).remove("/grads");
    CHECK_THROWS_WITH(tolerated(without.path, run, attention), Contains("expected both loss and grads, or neither"));
  }
  if (files > 0) WARN(data_sets << " data sets of " << files << " files removed and changed");
}
