// Carrying scores equals a softmax attention on concatenated queries and keys, but not one on summed queries and keys.
#include "tests/core/nn/carried_attention.h"

#include <cstdio>

#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/worst.h"

namespace etc {
namespace {

using test::AttentionSizes;
using test::Carry;
using test::LayerHeads;

double difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) test::keep_worst(worst, std::abs(1.0 * a[i] - b[i]));
  return worst;
}

TEST_CASE("carried scores equal attention on concatenated queries and keys over twelve layers", "[nn]") {
  const AttentionSizes sizes{3, 16, {0, 40, 41, 70}};
  std::vector<LayerHeads> layers;
  for (std::uint64_t layer = 0; layer < 12; ++layer) {
    const std::int64_t count = sizes.heads * sizes.tokens() * sizes.size;
    layers.push_back({test::random_floats(count, 3 * layer + 1), test::random_floats(count, 3 * layer + 2),
                      test::random_floats(count, 3 * layer + 3)});
  }
  for (const Carry carry : {Carry::sum, Carry::mean}) {
    const auto outputs = carried(layers, sizes, carry).outputs;
    const auto plain = carried(layers, sizes, Carry::none).outputs;
    double worst = 0;
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      CAPTURE(layer);
      const double off = difference(outputs[layer], concatenated(layers, layer, sizes, carry));
      CHECK(off <= 1e-5);
      worst = std::max(worst, off);
      if (layer > 0) CHECK(difference(outputs[layer], plain[layer]) > 1e-2);
    }
    std::printf("concatenated queries and keys, 12 layers, %s: %.1e\n", carry == Carry::sum ? "sum" : "mean", worst);
  }
}

TEST_CASE("the worked numbers of carried scores come out", "[nn]") {
  // d = 2, two queries, two keys, two layers. Values are unit vectors: outputs are the probabilities.
  const AttentionSizes sizes{1, 2, {0, 2}};
  const std::vector<float> unit = {1, 0, 0, 1};
  const std::vector<LayerHeads> layers = {{{1, 0, 0, 1}, {1, 1, 0, 2}, unit}, {{0.5f, -1, 1, 1}, {2, 0, -1, 1}, unit}};
  const auto near = [](const std::vector<float>& got, const std::vector<double>& expected) {
    return test::near_all("probabilities", got, expected, 1e-6);
  };
  const test::CarriedRun sum = carried(layers, sizes, Carry::sum), mean = carried(layers, sizes, Carry::mean);
  CHECK(near(sum.outputs[1], {0.922361, 0.077639, 0.669762, 0.330238}));
  CHECK(near(mean.outputs[1], {0.775118, 0.224882, 0.587479, 0.412521}));
  CHECK(near(concatenated(layers, 1, sizes, Carry::sum), {0.922361, 0.077639, 0.669762, 0.330238}));
  CHECK(near(concatenated(layers, 1, sizes, Carry::mean), {0.775118, 0.224882, 0.587479, 0.412521}));
  // Running scores by distance, columns -1 … 1: values outside the sequence are arbitrary.
  const auto scores = [](const test::CarriedRun& run, std::size_t layer) {
    const float* c = run.scores.at(layer).data();
    return std::vector<float>{c[1], c[2], c[3], c[4]};
  };
  CHECK(near(scores(sum, 0), {0.707107, 0, 0.707107, 1.414214}));
  CHECK(near(scores(sum, 1), {1.414214, -1.060660, 2.121320, 1.414214}));
  // The blog's other form, with sums of queries and of keys, is a different attention.
  const std::vector<LayerHeads> added = {{{1.5f, -1, 1, 2}, {3, 1, -1, 3}, unit}};
  const std::vector<float> of_sums = carried(added, sizes, Carry::none).outputs[0];
  CHECK(near(of_sums, {0.996519, 0.003481, 0.5, 0.5}));
  CHECK(difference(of_sums, sum.outputs[1]) > 0.05);
}

}  // namespace
}  // namespace etc
