// Carried scores against dense_reference.h5, group `residual_scores`: layers of queries, keys and values alone.
#include <cmath>

#include "tests/core/nn/carried_attention.h"
#include "tests/golden/falsified.h"
#include "tests/golden/golden_case.h"
#include "tests/golden/golden_group.h"
#include "tests/reference/dense.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"
#include "tests/support/h5_edit.h"
#include "tests/support/worst.h"

namespace etc::test {
namespace {

// The file's README: float32; outputs of several layers.
constexpr double kAbsolute = 1e-4, kRelative = 1e-4;

struct Group {
  explicit Group(const GoldenFile& file) : mask(file.read_mask("residual_scores/mask")) {
    const auto q = read(file, "Q"), k = read(file, "K"), v = read(file, "V");
    const auto shape = file.read<float>("residual_scores/Q").shape;
    n = shape.at(2);
    sizes = {shape.at(1), shape.at(3), {0, n}};
    labels.assign(static_cast<std::size_t>(n * (2 * n - 1)), sparse::kMasked);
    for (std::int64_t i = 0; i < n * n; ++i) {
      if (mask[static_cast<std::size_t>(i)] == 0) continue;
      labels[static_cast<std::size_t>(i / n * (2 * n - 1) + i % n - i / n + n - 1)] = 0;
    }
    sizes.labels = labels.data();
    const auto count = static_cast<std::size_t>(sizes.heads * n * sizes.size);
    for (std::size_t at = 0; at < q.size(); at += count) {
      const auto part = [&](const std::vector<float>& x) { return std::vector<float>(&x[at], &x[at] + count); };
      layers.push_back({part(q), part(k), part(v)});
    }
  }

  static std::vector<float> read(const GoldenFile& file, const std::string& name) {
    return file.read<float>("residual_scores/" + name).values;
  }

  std::vector<std::int32_t> mask;
  std::vector<std::uint8_t> labels;
  std::int64_t n = 0;
  AttentionSizes sizes;
  std::vector<LayerHeads> layers;
};

// The sums of the queries and of the keys of all layers up to `last`: a form that is not equal to carried scores.
LayerHeads added(const std::vector<LayerHeads>& layers, std::size_t last) {
  LayerHeads sum = layers[last];
  for (std::size_t layer = 0; layer < last; ++layer) {
    for (std::size_t i = 0; i < sum.q.size(); ++i) {
      sum.q[i] += layers[layer].q[i];
      sum.k[i] += layers[layer].k[i];
    }
  }
  return sum;
}

// The scores [N, n, n] of a layer from those by distance [N, n, 2n-1].
void append_scores(std::vector<float>& to, const Tensor& scores, std::int64_t n) {
  for (std::int64_t i = 0; i < scores.dim(0) * n * n; ++i) {
    const std::int64_t key = i % n, row = i / n;
    to.push_back(scores.data()[row * (2 * n - 1) + key - row % n + n - 1]);
  }
}

// Scores do not depend on the mask, so they are those of attention to all keys: the file has them of masked pairs, too.
void add_scores(Group group, NamedNumbers& results) {
  group.sizes.labels = nullptr;
  const CarriedRun run = carried(group.layers, group.sizes, Carry::sum);
  std::vector<float>&sums = results["carried_sum"], &own = results["layer_scores"];
  for (std::size_t layer = 0; layer < group.layers.size(); ++layer) {
    append_scores(sums, run.scores.at(layer), group.n);
    append_scores(own, carried({group.layers[layer]}, group.sizes, Carry::sum).scores.at(0), group.n);
    append_scores(results["added_qk_scores_not_equal"],
                  carried({added(group.layers, layer)}, group.sizes, Carry::sum).scores.at(0), group.n);
  }
  results["concatenated_scores"] = sums;
}

// joined: the outputs are those of one attention on the queries and keys of all layers.
NamedNumbers score_results(const Group& group, bool joined) {
  NamedNumbers results;
  for (const auto& [name, carry] : {std::pair<std::string, Carry>("sum", Carry::sum), {"mean", Carry::mean}}) {
    const CarriedRun run = carried(group.layers, group.sizes, carry);
    const auto probabilities = test::probabilities(group.layers, group.sizes, carry);
    for (std::size_t layer = 0; layer < group.layers.size(); ++layer) {
      const std::vector<float> output =
          joined ? concatenated(group.layers, layer, group.sizes, carry) : run.outputs[layer];
      std::vector<float>&outputs = results[name + "/output"], &probs = results[name + "/probs"];
      outputs.insert(outputs.end(), output.begin(), output.end());
      probs.insert(probs.end(), probabilities[layer].begin(), probabilities[layer].end());
    }
  }
  add_scores(group, results);
  return results;
}

bool is_score_input(const std::string& name) {
  return name == "Q" || name == "K" || name == "V" || name == "mask";
}

// The names of the file's data sets that are not among the results, or not within the tolerance.
std::vector<std::string> differing(const GoldenFile& file, const NamedNumbers& results) {
  std::vector<std::string> names;
  std::size_t compared = 0;
  for (const std::string& name : data_sets_below(file, "residual_scores")) {
    if (is_score_input(name)) continue;
    ++compared;
    const auto expected = file.read<double>("residual_scores/" + name).values;
    const auto found = results.find(name);
    const bool same = found != results.end() && worst_difference(expected, found->second, kAbsolute, kRelative) <= 1;
    if (!same) names.push_back(name);
  }
  CHECK(compared == results.size());
  return names;
}

TEST_CASE("carried scores have the scores, probabilities and outputs of the formulas", "[golden]") {
  for_each_file_with("residual_scores/Q", [](const GoldenFile& file) {
    const Group group(file);
    for (const bool joined : {false, true}) {
      const NamedNumbers results = score_results(group, joined);
      CAPTURE(joined);
      CHECK(differing(file, results) == std::vector<std::string>{});
      const auto& others = results.at("added_qk_scores_not_equal");
      CHECK(worst_difference(to_double(results.at("carried_sum")), others, 1e-2, 0) > 1);
    }
    file.require_all_read("residual_scores");
  });
}

TEST_CASE("a changed number of carried scores is noticed, at masked pairs, too", "[golden]") {
  for_each_file_with("residual_scores/Q", [](const GoldenFile& file) {
    const Group group(file);
    const NamedNumbers results = score_results(group, false);
    for (const auto& [name, values] : results) {
      for (const bool masked : {false, true}) {
        const std::int64_t place =
            largest_place(values, [&](std::size_t i) { return !masked || group.mask[i % group.mask.size()] == 0; });
        if (values[static_cast<std::size_t>(place)] == 0) continue;  // a probability of a masked pair
        CAPTURE(name, place);
        const Falsified copy(file.path());
        H5Edit(copy.path).scale_element("/residual_scores/" + name, place, 1.01);
        CHECK(differing(GoldenFile(copy.path), results) == std::vector<std::string>{name});
      }
    }
  });
}

}  // namespace
}  // namespace etc::test
