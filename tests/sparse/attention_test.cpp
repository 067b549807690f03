// Both operators against the double-precision reference, forward and backward, with and without running scores.
#include <cmath>

#include "sparse/register_cpu.h"
#include "tests/sparse/attention_support.h"
#include "tests/support/catch.h"

using namespace etc;
using namespace etc::test;

namespace {

// {name, lengths, globals, radius, N, D, R, labels, magnitude, dropout, padding, seed}
const std::vector<AttentionCase>& cases() {
  static const std::vector<AttentionCase> all = {
      {"one token, no globals", {1}, {0}, 3, 2, 8, 0, Labels::none},
      {"one token each", {1}, {1}, 5, 1, 4, 6, Labels::document},
      {"one-token examples", {1, 1, 1}, {1, 2, 0}, 2, 2, 6, 8, Labels::document, 1.0f, 0.0f, 3},
      {"shorter than the radius", {5}, {3}, 9, 2, 10, 9, Labels::document},
      {"no globals", {70}, {0}, 7, 2, 16, 12, Labels::document},
      {"no long tokens", {0}, {20}, 4, 2, 16, 12, Labels::document},
      {"an example without anything", {9, 0, 5}, {4, 0, 3}, 3, 2, 8, 8, Labels::document},
      {"window covers the input", {40}, {6}, 64, 2, 16, 32, Labels::document},
      {"no labels", {90}, {10}, 12, 2, 32, 0, Labels::none},
      {"labels only mask", {60}, {12}, 9, 2, 16, 0, Labels::scattered},
      {"document, D = 64", {130}, {23}, 20, 2, 64, 32, Labels::document},
      {"hard g2l", {200}, {20}, 12, 1, 16, 12, Labels::hard},
      {"scattered masks and labels", {75, 33}, {17, 40}, 11, 2, 16, 32, Labels::scattered, 1.0f, 0.0f, 7},
      {"three examples of very different length", {150, 3, 40}, {9, 33, 1}, 8, 2, 24, 14, Labels::scattered},
      {"D = 1", {37}, {5}, 4, 2, 1, 7, Labels::scattered},
      {"D = 2", {37}, {5}, 4, 2, 2, 7, Labels::scattered},
      {"D = 6", {37}, {5}, 4, 3, 6, 9, Labels::scattered, 1.0f, 0.0f, 1},
      {"D = 10", {37}, {5}, 4, 2, 10, 9, Labels::scattered},
      {"D = 80", {50}, {7}, 6, 1, 80, 9, Labels::document},
      {"R odd and large", {60}, {20}, 30, 1, 16, 57, Labels::scattered},
      {"R of 255", {40}, {9}, 12, 1, 8, 255, Labels::scattered},
      {"radius 0", {30}, {4}, 0, 1, 8, 5, Labels::document},
      {"several segments", {1200}, {5}, 9, 1, 4, 8, Labels::document},
      {"radius beyond a segment", {1100}, {2}, 600, 1, 2, 8, Labels::document},
      {"several key splits", {1100}, {18}, 2, 1, 4, 8, Labels::hard},
      {"scores near 88", {64}, {8}, 10, 1, 16, 8, Labels::scattered, 5.0f},
      {"tiny scores", {64}, {8}, 10, 1, 16, 8, Labels::scattered, 1e-3f},
      {"dropout", {60, 21}, {13, 6}, 7, 2, 16, 9, Labels::scattered, 1.0f, 0.3f},
      {"dropout without labels", {45}, {10}, 5, 2, 8, 0, Labels::none, 1.0f, 0.1f},
  };
  return all;
}

}  // namespace

TEST_CASE("both operators equal the reference in values and gradients", "[sparse]") {
  sparse::register_cpu_kernels();
  const OneThread one_thread;
  for (const AttentionCase& c : cases()) {
    for (Side side : {Side::long_side, Side::global_side}) {
      const Stack stack{c, side, 1, {}, false, false};
      const StackResult result = run_stack(stack);
      CHECK(compare_with_reference(stack, result) == "");
      const AttentionProblem& p = *result.layers[0];
      for (const bench::RowBuffer* rows : {&p.out, &p.dq, &p.dk[0], &p.dk[1], &p.dv[0], &p.dv[1]}) {
        CHECK(rows->guards_intact());
      }
    }
  }
}

TEST_CASE("running scores equal the reference through several layers", "[sparse]") {
  sparse::register_cpu_kernels();
  const OneThread one_thread;
  for (const AttentionCase& c : cases()) {
    if (c.lengths[0] > 80) continue;
    for (Side side : {Side::long_side, Side::global_side}) {
      for (bool mean : {false, true}) {
        const Stack stack{c, side, 3, {true, true, true, true}, mean, false};
        CHECK(compare_with_reference(stack, run_stack(stack)) == "");
      }
    }
  }
}

TEST_CASE("a query that sees nothing gives zero and no gradient", "[sparse]") {
  sparse::register_cpu_kernels();
  const AttentionCase c{"scattered masks", {75}, {17}, 3, 1, 16, 8, Labels::scattered};
  const Stack stack{c, Side::long_side, 1, {}, false, false};
  const StackResult result = run_stack(stack);
  const AttentionProblem& p = *result.layers[0];
  std::int64_t unseeing = 0;
  for (std::int64_t row = 0; row < p.q.count; ++row) {
    if (p.lse[row] > -INFINITY) continue;
    ++unseeing;
    for (std::int64_t d = 0; d < p.q.width; ++d) {
      CHECK(p.out.at(row, d) == 0.0f);
      CHECK(p.dq.at(row, d) == 0.0f);
    }
  }
  CHECK(unseeing > 0);
}
