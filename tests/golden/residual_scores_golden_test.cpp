// Carried scores against dense_reference.h5, group `residual_scores`: layers of queries, keys and values alone.
#include <cstdio>

#include "tests/core/nn/carried_attention.h"
#include "tests/golden/golden_case.h"
#include "tests/golden/golden_group.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"

namespace etc::test {
namespace {

// The file's README: float32; outputs of several layers.
constexpr double kAbsolute = 1e-4, kRelative = 1e-4;

// The largest difference in units of the tolerance, over the elements from `first` on.
double worst_of(const std::vector<double>& expected, const std::vector<float>& got, std::size_t first) {
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double e = expected.at(first + i), off = std::abs(got[i] - e) / (kAbsolute + kRelative * std::abs(e));
    if (!(off <= worst)) worst = std::isnan(off) ? HUGE_VAL : off;
  }
  return worst;
}

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

// Compares at visible pairs the running scores, each layer's contribution, and the scores of the form that is not equal.
void compare_scores(const GoldenFile& file, const Group& group) {
  const auto numbers = [&](const std::string& name) { return file.read<double>("residual_scores/" + name).values; };
  const auto sums = numbers("carried_sum"), joined = numbers("concatenated_scores"), own = numbers("layer_scores");
  const auto others = numbers("added_qk_scores_not_equal");
  const CarriedRun run = carried(group.layers, group.sizes, Carry::sum);
  std::vector<Tensor> of_sums;
  for (std::size_t layer = 0; layer < group.layers.size(); ++layer) {
    of_sums.push_back(carried({added(group.layers, layer)}, group.sizes, Carry::sum).scores.at(0));
  }
  const std::int64_t n = group.n, pairs = n * n;
  double worst = 0, apart = 0;
  const auto compare = [&](double expected, double got) {
    worst = std::max(worst, std::abs(got - expected) / (kAbsolute + kRelative * std::abs(expected)));
  };
  for (std::size_t at = 0; at < sums.size(); ++at) {
    const auto i = static_cast<std::int64_t>(at);
    if (group.mask[static_cast<std::size_t>(i % pairs)] == 0) continue;
    const std::int64_t key = i % n, query = i / n % n, head = i / pairs % group.sizes.heads;
    const auto layer = static_cast<std::size_t>(i / pairs / group.sizes.heads);
    const auto score = [&](const Tensor& scores) {
      return static_cast<double>(scores.data()[(head * n + query) * (2 * n - 1) + key - query + n - 1]);
    };
    compare(sums[at], score(run.scores.at(layer)));
    compare(joined[at], score(run.scores.at(layer)));
    compare(own[at], score(run.scores[layer]) - (layer == 0 ? 0 : score(run.scores[layer - 1])));
    compare(others[at], score(of_sums[layer]));
    apart = std::max(apart, std::abs(others[at] - sums[at]));
  }
  CHECK(worst <= 1);
  CHECK(apart > 1e-2);
  std::printf("residual_scores scores %.3f of what is tolerated; sums of queries and keys are %.1f apart\n", worst,
              apart);
}

void compare_carried(const GoldenFile& file) {
  const Group group(file);
  const auto numbers = [&](const std::string& name) { return file.read<double>("residual_scores/" + name).values; };
  for (const auto& [name, carry] : {std::pair("sum", Carry::sum), std::pair("mean", Carry::mean)}) {
    const CarriedRun run = carried(group.layers, group.sizes, carry);
    const auto probabilities = test::probabilities(group.layers, group.sizes, carry);
    const auto outputs = numbers(std::string(name) + "/output"), probs = numbers(std::string(name) + "/probs");
    double worst = 0;
    for (std::size_t layer = 0; layer < group.layers.size(); ++layer) {
      CAPTURE(name, layer);
      const std::size_t first = layer * run.outputs[layer].size();
      const double of_output = worst_of(outputs, run.outputs[layer], first);
      const double of_joined = worst_of(outputs, concatenated(group.layers, layer, group.sizes, carry), first);
      const std::vector<float>& p = probabilities[layer];
      const double of_probs = worst_of(probs, p, layer * p.size());
      CHECK(of_output <= 1);
      CHECK(of_joined <= 1);
      CHECK(of_probs <= 1);
      worst = std::max({worst, of_output, of_joined, of_probs});
    }
    std::printf("residual_scores/%-4s %.3f of what is tolerated\n", name, worst);
  }
  compare_scores(file, group);
}

TEST_CASE("carried scores have the scores, probabilities and outputs of the formulas", "[golden]") {
  for_each_file_with("residual_scores/Q", compare_carried);
}

}  // namespace
}  // namespace etc::test
