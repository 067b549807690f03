// Tests of the comparison with golden files: it must fail if a data set is missing in a file or a number differs.
#include <algorithm>
#include <cmath>
#include <functional>
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

// The largest number of a data set that `counts` selects (null: of all); -1 without any.
std::int64_t largest_of(const GoldenCase& golden, const std::string& name,
                        const std::function<bool(std::int64_t)>& counts = nullptr) {
  return test::largest_place(golden.file.read<double>(name).values,
                             [&](std::size_t i) { return !counts || counts(static_cast<std::int64_t>(i)); });
}

// Of the masked pairs inside the sequence.
std::int64_t largest_masked(const GoldenCase& golden, const std::string& name, const std::string& type) {
  const std::int64_t columns = golden.masks.columns(type), queries = golden.masks.queries(type);
  return largest_of(golden, name, [&](std::int64_t i) {
    const std::int64_t query = i / columns % queries, b = i / columns / queries / golden.config.num_attention_heads;
    return golden.masks.key(type, query, i % columns) >= 0 && !golden.masks.allowed(type, b, query, i % columns);
  });
}

// One compared data set of every kind not yet seen: layers count as one kind, gradients by the last two parts of their
// names.
std::vector<std::string> one_of_each_kind(const GoldenCase& golden, std::set<std::string>& seen) {
  std::vector<std::string> names;
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

TEST_CASE("a tensor's gradient is compared with its own size", "[goldens]") {
  const Expected expected = {{"large", {10.0, -3.0}}, {"small", {0.2, 0.01}}};
  CHECK(worst_of(expected, {{"large", {10.0f, -3.0f}}, {"small", {0.2f, 0.01f}}}) < GradientDifference::kTolerance);
  CHECK(worst_of(expected, {{"large", {10.0f, -3.0f}}, {"small", {0.2002f, 0.01f}}}) == Approx(1e-3).epsilon(0.01));
  CHECK(worst_of(expected, {{"large", {10.0f, -3.003f}}, {"small", {0.2f, 0.01f}}}) == Approx(3e-4).epsilon(0.01));
}

TEST_CASE("a small tensor's gradient is compared with a hundredth of the largest gradient", "[goldens]") {
  const auto worst = [](double small, float got) {
    return worst_of({{"large", {40.0}}, {"small", {small}}}, {{"large", {40.0f}}, {"small", {got}}});
  };
  CHECK(worst(0, -3.9e-6f) < GradientDifference::kTolerance);
  CHECK(worst(0, -4.1e-6f) > GradientDifference::kTolerance);
  CHECK(worst(2e-3, 2.0039e-3f) < GradientDifference::kTolerance);
  CHECK(worst(2e-3, 2.0041e-3f) > GradientDifference::kTolerance);
  CHECK(worst_of({{"all", {0.0}}}, {{"all", {1e-12f}}}) > GradientDifference::kTolerance);
  CHECK(worst_of({{"all", {0.0}}}, {{"all", {0.0f}}}) < GradientDifference::kTolerance);
}

TEST_CASE("gradients of queries that have one key each are zero up to the values' rounding", "[goldens]") {
  const auto worst = [](double query, float got) {
    return worst_of({{"self/query/kernel", {query}}, {"self/value/kernel", {4.0}}},
                    {{"self/query/kernel", {got}}, {"self/value/kernel", {4.0f}}});
  };
  CHECK(worst(0, 1e-6f) < GradientDifference::kTolerance);
  CHECK(worst(0, 3e-5f) > GradientDifference::kTolerance);
  CHECK(worst(1e-7, 6e-7f) > GradientDifference::kTolerance);
}

TEST_CASE("a bias whose gradient cancels may hold its terms' rounding and no more", "[goldens]") {
  const Expected expected = {{"key/kernel", {4.0}}, {"key/bias", {2e-8}}};
  CHECK(worst_of(expected, {{"key/kernel", {4.0f}}, {"key/bias", {-1e-6f}}}) < GradientDifference::kTolerance);
  CHECK(worst_of(expected, {{"key/kernel", {4.0f}}, {"key/bias", {3e-5f}}}) > GradientDifference::kTolerance);
  // The largest of 106 BERTs.
  CHECK(worst_of({{"key/kernel", {2.3}}, {"key/bias", {-2.5e-16}}}, {{"key/kernel", {2.3f}}, {"key/bias", {4.3e-6f}}}) <
        GradientDifference::kTolerance);
  CHECK(worst_of({{"key/bias", {2e-8}}}, {{"key/bias", {-1e-6f}}}) > GradientDifference::kTolerance);
}

TEST_CASE("a gradient that only one side has is an error that names it", "[goldens]") {
  CHECK_THROWS_WITH(worst_of({{"a", {1.0}}}, {{"a", {1.0f}}, {"b", {1.0f}}}), Contains("b: gradient: computed, but"));
  CHECK_THROWS_WITH(worst_of({{"a", {1.0}}, {"b", {1.0}}}, {{"a", {1.0f}}}), Contains("b: gradient: in the golden"));
  CHECK_THROWS_WITH(worst_of({{"a", {1.0, 2.0}}}, {{"a", {1.0f}}}),
                    Contains("a: 2 numbers in the golden file, the model has 1"));
}

TEST_CASE("a number of the file that is nan is never within a tolerance", "[goldens]") {
  test::Worst worst;
  worst.compare("x", {1.0, NAN, 1.0}, {1.0f, 1.0f, 1.0f});
  CHECK(worst.value == HUGE_VAL);
  CHECK_THROWS_WITH(worst.compare("x", {1.0}, {1.0f, 1.0f}), Contains("1 numbers in the golden file, the model has 2"));
}

TEST_CASE("a carried score of a masked pair that is changed by a thousandth is noticed, and one outside the sequence",
          "[golden]") {
  int masked = 0;
  for (const auto& path : test::model_files("etc")) {
    const GoldenCase golden(path);
    if (!golden.config.use_residual_attention || !golden.file.has("outputs/layer_0")) continue;
    CAPTURE(path.filename().string());
    const GoldenRun run = test::golden_run(golden, golden.config, false);
    const auto within = [&](const std::filesystem::path& changed) {
      GoldenDifference difference;
      difference.compare(GoldenCase(changed), run);
      return difference.tolerated();
    };
    for (const std::string type : {"l2l", "l2g", "g2g", "g2l"}) {
      const std::string name = "outputs/layer_0/scores_" + type;
      const std::int64_t at = largest_masked(golden, name, type);
      if (at < 0) continue;
      CAPTURE(name, at);
      const Falsified changed(path);
      test::H5Edit(changed.path).scale_element("/" + name, at, 1.001);
      CHECK_FALSE(within(changed.path));
      ++masked;
    }
    const std::string name = "outputs/layer_0/scores_l2l";
    std::vector<double> scores = golden.file.read<double>(name).values;
    if (golden.masks.key("l2l", 0, 0) >= 0) continue;
    scores[0] = 1e-6;
    const Falsified outside(path);
    test::H5Edit(outside.path).put_floats("/" + name, scores, 4);
    CHECK_THROWS_WITH(within(outside.path), Contains("expected 0 outside the sequence"));
  }
  WARN(masked << " scores of masked pairs changed");
}

namespace {

// Which numbers of a data set are compared; null: all.
std::function<bool(std::int64_t)> compared_numbers(const GoldenCase& golden, const GoldenRun& run,
                                                   const std::string& data_set) {
  if (!data_set.starts_with("outputs")) return nullptr;
  const std::string name = data_set.substr(data_set.find('/') + 1);
  const std::size_t scores = name.find("/scores_");
  if (scores == std::string::npos) return test::counted_rows(golden, name);
  return test::counted_scores(golden, std::stoll(name.substr(6)), name.substr(scores + 8), run);
}

// Removes and changes data sets of the files with gradients, of every file or of each kind in the first that has it.
void require_changed_files_noticed(test::Sweep sweep) {
  int files = 0, data_sets = 0;
  std::set<std::string> seen;
  for (const auto& path : test::model_files("etc")) {
    const GoldenCase golden(path);
    // Files of all kinds: gradients in both precisions, with and without scores.
    if (!golden.file.has("grads64")) continue;
    if (sweep == test::Sweep::every_group) seen.clear();
    const std::vector<std::string> names = one_of_each_kind(golden, seen);
    if (names.empty()) continue;
    CAPTURE(path.filename().string());
    ++files;
    const GoldenRun run = test::golden_run(golden, golden.config, true);
    const test::LayerStates attention = test::attention_states(golden);
    REQUIRE(tolerated(path, run, attention));
    for (const std::string& name : names) {
      CAPTURE(name);
      ++data_sets;
      const Falsified removed(path), changed(path);
      test::H5Edit(removed.path).remove("/" + name);
      CHECK_THROWS_AS(tolerated(removed.path, run, attention), Error);
      const std::int64_t at = largest_of(golden, name, compared_numbers(golden, run, name));
      if (at < 0) continue;
      const double value = golden.file.read<double>(name).values.at(static_cast<std::size_t>(at));
      test::H5Edit(changed.path).shift_element("/" + name, at, test::falsification(name, value));
      CHECK_FALSE(tolerated(changed.path, run, attention));
    }
    const Falsified without(path);
    test::H5Edit(without.path).remove("/grads");
    CHECK_THROWS_WITH(tolerated(without.path, run, attention), Contains("expected both loss and grads, or neither"));
  }
  if (files > 0) WARN(data_sets << " data sets of " << files << " files removed and changed");
}

}  // namespace

TEST_CASE("a golden file with a data set removed or a number changed by a thousandth is noticed", "[golden]") {
  require_changed_files_noticed(test::Sweep::first_of_kind);
}

TEST_CASE("removed data sets and changed numbers of every golden file are noticed", "[golden][slow]") {
  require_changed_files_noticed(test::Sweep::every_group);
}
