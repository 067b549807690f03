// Linear attention on the emulated CUDA kernels, against the double-precision formula.
#include "sparse/cuda/register_cuda.h"
#include "tests/sparse/performer_support.h"
#include "tests/support/catch.h"
#include "tests/support/simt/emulator.h"
#include "tests/support/worst.h"

using namespace etc;
using namespace etc::test;

namespace {

// Compares a case, forward and backward, with the formula.
void check_case(PerformerCase c) {
  sparse::register_cuda_kernels();
  c.device = Device::cuda;
  CAPTURE(c.name);
  PerformerRun run(c);
  const std::int64_t before = simt::emulator_counts().launches;
  run.run();
  CHECK(simt::emulator_counts().launches > before);
  CHECK(run.guards_intact());
  const std::vector<double> out = run.dense(run.out), expected = reference::performer(run.reference());
  const double tolerance = 3e-5 * c.magnitude * c.magnitude * c.magnitude;
  double worst = 0.0;
  for (std::size_t i = 0; i < out.size(); ++i) test::keep_worst(worst, std::fabs(out[i] - expected[i]));
  CHECK(worst <= tolerance);
  const double slope = c.magnitude > 1.0f ? 2e-3 : 2e-4;
  CHECK(worst_difference(run, &reference::Performer::q, run.dq) < slope);
  CHECK(worst_difference(run, &reference::Performer::k, run.dk) < slope);
  CHECK(worst_difference(run, &reference::Performer::v, run.dv) < slope);
}

}  // namespace

TEST_CASE("emulated linear attention and its gradients are those of the formula", "[sparse][cuda]") {
  for (const PerformerCase& c : performer_cases()) {
    if (c.queries[0] < 100 && c.head_size < 64) check_case(c);
  }
  // More than one chunk of 512 rows.
  for (const bool causal : {false, true}) check_case({"chunks", {530, 3}, {530, 3}, 1, 2, 4, causal});
}

TEST_CASE("emulated linear attention of usual sizes and many chunks is that of the formula", "[sparse][cuda][slow]") {
  for (const PerformerCase& c : performer_cases()) {
    if (c.queries[0] >= 100 || c.head_size >= 64) check_case(c);
  }
}

TEST_CASE("emulated linear attention has the same bits for an example alone and in a batch", "[sparse][cuda]") {
  sparse::register_cuda_kernels();
  for (const bool causal : {false, true}) {
    PerformerCase c{"bits", {30, 90}, {30, 90}, 2, 4, 6, causal};
    c.device = Device::cuda;
    PerformerRun all(c);
    all.run();
    c.queries = c.keys = {90};
    PerformerRun one(c);
    const auto last = [&](const Floats& values) {
      return Floats(values.begin() + 30 * all.stride(), values.begin() + 120 * all.stride());
    };
    one.q = last(all.q);
    one.k = last(all.k);
    one.v = last(all.v);
    one.dout = last(all.dout);
    one.run();
    CHECK(same_bits(one.out, last(all.out)));
    CHECK(same_bits(one.dq, last(all.dq)));
    CHECK(same_bits(one.dk, last(all.dk)));
    CHECK(same_bits(one.dv, last(all.dv)));
  }
}
