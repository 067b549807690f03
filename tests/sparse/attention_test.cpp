// Both operators against the double-precision reference, forward and backward, with and without running scores.
#include <cmath>

#include "sparse/register_cpu.h"
#include "tests/sparse/attention_support.h"
#include "tests/support/catch.h"

using namespace etc;
using namespace etc::test;

TEST_CASE("both operators equal the reference in values and gradients", "[sparse]") {
  sparse::register_cpu_kernels();
  const OneThread one_thread;
  for (const AttentionCase& c : attention_cases()) {
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
  for (const AttentionCase& c : attention_cases()) {
    if (c.lengths[0] > 80) continue;
    for (Side side : {Side::long_side, Side::global_side}) {
      for (bool mean : {false, true}) {
        const Stack stack{c, side, 3, {true, true, true, true}, mean, false};
        CHECK(compare_with_reference(stack, run_stack(stack)) == "");
      }
    }
  }
}

TEST_CASE("every relative term equals the reference in values and gradients, with and without running scores",
          "[sparse]") {
  sparse::register_cpu_kernels();
  const OneThread one_thread;
  for (const AttentionCase& c : term_cases()) {
    for (Side side : {Side::long_side, Side::global_side}) {
      const Stack alone{c, side, 1, {}, false, false};
      CHECK(compare_with_reference(alone, run_stack(alone)) == "");
      if (c.lengths[0] > 80) continue;
      for (bool mean : {false, true}) {
        const Stack stack{c, side, 3, {true, true, true, true}, mean, mean};
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
