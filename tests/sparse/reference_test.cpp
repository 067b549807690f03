// The reference itself: worked numbers of the specification and central differences.
#include <cmath>

#include "tests/reference/attention.h"
#include "tests/sparse/attention_support.h"
#include "tests/support/catch.h"

using namespace etc;
using namespace etc::test;

namespace {

// etc-core 15.2: one head, D = 2, four long and two global tokens, identity projections.
reference::Attention fused_layer(bool is_long) {
  const reference::Values longs = {1, 0, 0, 1, 1, 1, -1, 0.5}, globals = {0.5, 0.5, 0, -1};
  reference::Attention a;
  a.head_size = 2;
  a.relative_labels = 6;
  a.query_offsets = {0, is_long ? 4 : 2};
  a.q = is_long ? longs : globals;
  for (int r = 0; r < 6; ++r) {
    a.rel.push_back(is_long ? 0.1 * r : -0.1 * r);
    a.rel.push_back(is_long ? -0.05 * r : 0.2);
    a.rel_bias.push_back((is_long ? 0.01 : 0.02) * r);
  }
  a.types[0].key_offsets = a.query_offsets;
  a.types[1].key_offsets = {0, is_long ? 2 : 4};
  a.types[0].k = a.types[0].v = is_long ? longs : globals;
  a.types[1].k = a.types[1].v = is_long ? globals : longs;
  a.types[0].window = is_long;
  a.types[0].radius = 1;
  if (is_long) {
    a.types[0].labels = {255, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 255};
    a.types[1].labels = {4, 3, 4, 3, 3, 4, 3, 4};
  } else {
    a.types[0].labels = {0, 1, 2, 0};
    a.types[1].labels = {4, 4, 3, 3, 3, 3, 4, 4};
  }
  return a;
}

void check_near(const reference::Values& got, const reference::Values& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(std::fabs(got[i] - expected[i]) < 1e-6);
}

}  // namespace

TEST_CASE("the reference gives the worked numbers of the specification", "[sparse]") {
  check_near(reference::forward(fused_layer(true)).out,
             {0.475015, 0.125086, 0.532648, 0.627133, 0.455911, 0.729758, -0.357632, 0.389395});
  check_near(reference::forward(fused_layer(false)).out, {0.422933, 0.489263, 0.212310, -0.046513});
  reference::Attention hard = fused_layer(false);
  hard.types[1].labels = {4, 4, 255, 255, 255, 255, 4, 4};
  check_near(reference::forward(hard).out, {0.427302, 0.281905, 0.034836, -0.192679});
  check_near(reference::forward(fused_layer(false)).running[0], {0.424264, -0.304056, -0.466690, 0.565685});
}

TEST_CASE("the reference gives the worked running scores of the specification", "[sparse]") {
  // etc-core 9.1: D = 1, q = 1, so that the keys are the scores; three keys, the third masked.
  const std::vector<reference::Values> scores = {{0.4, -0.2, 1.0}, {0.1, 0.7, -0.3}, {-0.5, 0.2, 0.6}};
  const std::vector<reference::Values> sums = {{0.645656, 0.354344}, {0.5, 0.5}, {0.331812, 0.668188}};
  const std::vector<reference::Values> means = {{0.645656, 0.354344}, {0.5, 0.5}, {0.441930, 0.558070}};
  for (bool mean : {false, true}) {
    reference::Values carried;
    for (std::size_t l = 0; l < scores.size(); ++l) {
      reference::Attention a;
      a.query_offsets = {0, 1};
      a.q = {1.0};
      a.types[0].key_offsets = {0, 0};
      a.types[1].key_offsets = {0, 3};
      a.types[1].k = scores[l];
      a.types[1].v = {1.0, 0.0, 0.0};
      a.types[1].labels = {0, 0, 255};
      a.types[1].carries = true;
      a.types[1].previous = carried;
      a.types[1].logit_scale = mean ? 1.0 / static_cast<double>(l + 1) : 1.0;
      const reference::Result result = reference::forward(a);
      carried = result.running[1];
      CHECK(std::fabs(result.out[0] - (mean ? means : sums)[l][0]) < 1e-6);
    }
    check_near(carried, {0.0, 0.7, 1.3});
  }
}

TEST_CASE("the reference's gradients equal central differences through two layers", "[sparse]") {
  AttentionCase c{"small", {9, 4}, {5, 2}, 2, 2, 3, 7, Labels::scattered, 1.0f, 0.2f};
  const int terms = GENERATE(0, 1, 2);
  if (terms > 0) {
    c.parts = {true, true, true, terms == 1, terms == 2, true, terms == 2};
    c.distances = {-2, {0, 1, 6, 3, 2}};
    c.shifts = {1, -1};
    c.scale = 0.9f;
  }
  const auto structure = std::make_shared<const Structure>(c);
  for (Side side : {Side::long_side, Side::global_side}) {
    const AttentionProblem p0(c, structure, side, 0), p1(c, structure, side, 1);
    std::vector<reference::Attention> layers = {reference_of(p0), reference_of(p1)};
    const reference::Values dout[2] = {{p0.dout.values.begin(), p0.dout.values.end()},
                                       {p1.dout.values.begin(), p1.dout.values.end()}};
    for (int t = 0; t < 2; ++t) {
      layers[0].types[t].carries = layers[1].types[t].carries = t == 0;
      layers[1].types[t].logit_scale = 0.5;
    }
    // loss = sum over both layers of out * dout; type 0 carries its scores from layer to layer.
    const auto loss = [&] {
      double sum = 0.0;
      for (std::size_t l = 0; l < 2; ++l) {
        if (l == 1) layers[1].types[0].previous = reference::forward(layers[0]).running[0];
        const reference::Result result = reference::forward(layers[l]);
        for (std::size_t i = 0; i < result.out.size(); ++i) sum += result.out[i] * dout[l][i];
      }
      return sum;
    };
    loss();
    const reference::Values none[2];
    const reference::Gradients g1 = reference::backward(layers[1], dout[1], none, none);
    const reference::Values down[2] = {g1.drunning[0], {}}, down_mass[2] = {g1.drunning_mass[0], {}};
    const reference::Gradients g0 = reference::backward(layers[0], dout[0], down, down_mass);
    const auto check = [&](reference::Values& x, const reference::Values& gradient) {
      REQUIRE(x.size() == gradient.size());
      for (std::size_t i = 0; i < x.size(); i += 3) {
        const double before = x[i], step = 1e-5;
        x[i] = before + step;
        const double up = loss();
        x[i] = before - step;
        const double difference = (up - loss()) / (2 * step);
        x[i] = before;
        CHECK(std::fabs(difference - gradient[i]) < 1e-8);  // step^2 times the third derivative, plus rounding / step
      }
    };
    const reference::Gradients* gradients[2] = {&g0, &g1};
    for (std::size_t l = 0; l < 2; ++l) {
      check(layers[l].q, gradients[l]->dq);
      check(layers[l].rel, gradients[l]->drel);
      check(layers[l].rel_bias, gradients[l]->drel_bias);
      check(layers[l].rel_k, gradients[l]->drel_k);
      check(layers[l].factor, gradients[l]->dfactor);
      check(layers[l].product, gradients[l]->dproduct);
      check(layers[l].rel_v, gradients[l]->drel_v);
      for (int t = 0; t < 2; ++t) {
        check(layers[l].types[t].k, gradients[l]->dk[t]);
        check(layers[l].types[t].v, gradients[l]->dv[t]);
      }
    }
  }
}
