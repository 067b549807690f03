// Linear attention against the double-precision formula, its gradients against central differences of that formula.
#include <fmt/format.h>

#include <cmath>
#include <functional>

#include "etc_core/base/error.h"
#include "etc_core/base/parallel.h"
#include "sparse/register_cpu.h"
#include "tests/sparse/performer_support.h"
#include "tests/support/catch.h"

using namespace etc;
using namespace etc::test;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

TEST_CASE("linear attention equals the formula in values", "[sparse]") {
  sparse::register_cpu_kernels();
  for (const PerformerCase& c : performer_cases()) {
    PerformerRun run(c);
    run.run();
    CAPTURE(c.name);
    const std::vector<double> out = run.dense(run.out), expected = reference::performer(run.reference());
    // Weights are positive, so the error of a mean of values comes from the features: D + 8 roundings of u, and one
    // rounding of sums per feature, key and block. The u of `large inputs` are near 40.
    const double tolerance = 3e-5 * c.magnitude * c.magnitude * c.magnitude;
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (!(std::fabs(out[i] - expected[i]) <= tolerance))
        FAIL(c.name << ": " << i << ": " << expected[i] << " " << out[i]);
    }
    CHECK(run.guards_intact());
  }
}

TEST_CASE("gradients of linear attention are those of the formula", "[sparse]") {
  sparse::register_cpu_kernels();
  for (const PerformerCase& c : performer_cases()) {
    PerformerRun run(c);
    run.run();
    CAPTURE(c.name);
    const double tolerance = c.magnitude > 1.0f ? 2e-3 : 2e-4;
    CHECK(worst_difference(run, &reference::Performer::q, run.dq) < tolerance);
    CHECK(worst_difference(run, &reference::Performer::k, run.dk) < tolerance);
    CHECK(worst_difference(run, &reference::Performer::v, run.dv) < tolerance);
  }
}

TEST_CASE("the gradient of a key that has the maximum is whole where the 1e-6 matters", "[sparse]") {
  sparse::register_cpu_kernels();
  // The exponentials are about 1e-6, as large as the stabiliser that is added to them.
  PerformerRun run({"small features", {12}, {12}, 1, 2, 3, false, true, 6.0f});
  for (float& w : run.projection) w *= 1.5f;
  run.run();
  CHECK(worst_difference(run, &reference::Performer::k, run.dk) < 2e-3);
  CHECK(worst_difference(run, &reference::Performer::q, run.dq) < 2e-3);
}

TEST_CASE("features of one dimension are the specification's numbers", "[sparse]") {
  reference::Performer p{1, 1, 4, {0, 1}, {0, 1}, {0.5}, {0.8}, {1.0}, {1.0, -1.0, 0.5, -0.5}, false, false};
  const double expected_q[] = {0.727496, 0.267631, 0.566574, 0.343645};
  const double expected_k[] = {0.808037, 0.163140, 0.541644, 0.243376};
  const std::vector<double> q = reference::query_features(p), k = reference::key_features(p);
  double estimate = 0.0;
  for (std::size_t r = 0; r < 4; ++r) {
    CHECK(std::fabs(q[r] - expected_q[r]) < 1e-6);
    CHECK(std::fabs(k[r] - expected_k[r]) < 1e-6);
    estimate += q[r] * k[r];
  }
  CHECK(std::fabs(estimate - 1.022021) < 1e-6);
}

TEST_CASE("with equal keys linear attention is the mean of the values", "[sparse]") {
  sparse::register_cpu_kernels();
  for (const bool causal : {false, true}) {
    PerformerRun run({"equal keys", {50}, {50}, 1, 8, 24, causal});
    for (std::size_t i = 0; i < run.k.size(); ++i) run.k[i] = run.k[i % static_cast<std::size_t>(run.stride())];
    run.run();
    const std::vector<double> v = run.dense(run.v), out = run.dense(run.out);
    for (std::size_t c = 0; c < 8; ++c) {
      double sum = 0.0;
      for (std::size_t j = 0; j < 50; ++j) {
        sum += v[j * 8 + c];
        if (causal) CHECK(std::fabs(out[j * 8 + c] - sum / static_cast<double>(j + 1)) < 1e-5);
      }
      CHECK(std::fabs(out[49 * 8 + c] - sum / 50.0) < 1e-5);
    }
  }
}

TEST_CASE("twice the features have half the squared error, and the stabiliser changes little", "[sparse]") {
  sparse::register_cpu_kernels();
  const auto error_of = [](std::int64_t features) {
    double sum = 0.0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      PerformerRun run({"features", {24}, {24}, 1, 8, features, false, true, 0.7f});
      sparse::draw_projection({features, 8, sparse::PerformerDraw::Norms::chi, seed}, run.projection.data());
      run.run();
      const std::vector<double> q = run.dense(run.q), k = run.dense(run.k), v = run.dense(run.v),
                                out = run.dense(run.out);
      for (std::size_t i = 0; i < 24; ++i) {
        std::vector<double> mean(8, 0.0);
        double total = 0.0;
        for (std::size_t j = 0; j < 24; ++j) {
          double score = 0.0;
          for (std::size_t c = 0; c < 8; ++c) score += q[i * 8 + c] * k[j * 8 + c];
          const double weight = std::exp(score / std::sqrt(8.0));
          total += weight;
          for (std::size_t c = 0; c < 8; ++c) mean[c] += weight * v[j * 8 + c];
        }
        for (std::size_t c = 0; c < 8; ++c) sum += std::pow(out[i * 8 + c] - mean[c] / total, 2);
      }
    }
    return sum;
  };
  const double few = error_of(96), twice = error_of(192);
  CHECK(few / twice > 1.6);
  CHECK(few / twice < 2.5);

  PerformerRun stable({"stabilised", {40}, {40}, 1, 8, 32, false, true, 0.5f});
  PerformerRun bare({"exact", {40}, {40}, 1, 8, 32, false, false, 0.5f});
  stable.run();
  bare.run();
  const std::vector<double> a = stable.dense(stable.out), b = bare.dense(bare.out);
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::fabs(a[i] - b[i]) <= 1e-4 * (std::fabs(b[i]) + 0.1));
}

TEST_CASE("linear attention has the same bits on 1, 2 and 3 threads, and for an example alone", "[sparse]") {
  sparse::register_cpu_kernels();
  const int before = thread_count();
  for (const bool causal : {false, true}) {
    const PerformerCase c{"bits", {700, 30, 1100}, {700, 30, 1100}, 2, 8, 20, causal};
    set_thread_count(1);
    PerformerRun one(c);
    one.run();
    for (const int threads : {2, 3}) {
      set_thread_count(threads);
      PerformerRun more(c);
      more.run();
      CHECK(test::same_bits(one.out, more.out));
      CHECK(test::same_bits(one.dq, more.dq));
      CHECK(test::same_bits(one.dk, more.dk));
      CHECK(test::same_bits(one.dv, more.dv));
    }
    for (std::size_t b = 0; b < c.queries.size(); ++b) {
      PerformerCase own = c;
      own.queries = own.keys = {c.queries[b]};
      PerformerRun alone(own);
      const auto part = [&](const Floats& all) {
        const auto first = all.begin() + one.query_offsets[b] * one.stride();
        return Floats(first, first + c.queries[b] * one.stride());
      };
      alone.q = part(one.q);
      alone.k = part(one.k);
      alone.v = part(one.v);
      alone.dout = part(one.dout);
      alone.run();
      CHECK(test::same_bits(alone.out, part(one.out)));
      CHECK(test::same_bits(alone.dq, part(one.dq)));
      CHECK(test::same_bits(alone.dk, part(one.dk)));
      CHECK(test::same_bits(alone.dv, part(one.dv)));
    }
  }
  set_thread_count(before);
}

// test_sparse.avx2 runs this test again with ETC_MAX_CPU=avx2.
TEST_CASE("linear attention of every instruction set equals the formula", "[sparse][processor]") {
  sparse::register_cpu_kernels();
  for (const bool causal : {false, true}) {
    PerformerRun run({"processor", {70, 9}, {70, 9}, 2, 10, 27, causal});
    run.run();
    const std::vector<double> out = run.dense(run.out), expected = reference::performer(run.reference());
    for (std::size_t i = 0; i < out.size(); ++i) CHECK(std::fabs(out[i] - expected[i]) <= 3e-5);
    CHECK(worst_difference(run, &reference::Performer::k, run.dk) < 2e-4);
  }
}

TEST_CASE("directions are orthogonal in blocks, cut off at the last, and drawn anew on demand", "[sparse]") {
  using Norms = sparse::PerformerDraw::Norms;
  const auto draw = [](Norms norms, std::uint64_t seed, std::int64_t layer, std::int64_t redraw) {
    Floats w(static_cast<std::size_t>(20 * 8));
    sparse::draw_projection({20, 8, norms, seed, layer, redraw}, w.data());
    return w;
  };
  const Floats root = draw(Norms::root, 3, 0, 0), chi = draw(Norms::chi, 3, 0, 0);
  for (std::size_t a = 0; a < 20; ++a) {
    for (std::size_t b = 0; b <= a; ++b) {
      double dot = 0.0;
      for (std::size_t c = 0; c < 8; ++c) dot += static_cast<double>(root[a * 8 + c]) * root[b * 8 + c];
      if (a == b) CHECK(std::fabs(dot - 8.0) < 1e-5);
      if (a != b && a / 8 == b / 8) CHECK(std::fabs(dot) < 1e-5);
    }
  }
  CHECK(root != chi);
  CHECK(draw(Norms::chi, 3, 0, 0) == chi);
  CHECK(draw(Norms::chi, 4, 0, 0) != chi);
  CHECK(draw(Norms::chi, 3, 1, 0) != chi);
  CHECK(draw(Norms::chi, 3, 0, 1) != chi);
  // With more features the first rows stay the same.
  Floats fewer(static_cast<std::size_t>(12 * 8));
  sparse::draw_projection({12, 8, Norms::chi, 3}, fewer.data());
  CHECK(std::equal(fewer.begin(), fewer.end(), chi.begin()));
  // chi(D): squared norms have mean D.
  double squares = 0.0;
  Floats many(static_cast<std::size_t>(4000 * 8));
  sparse::draw_projection({4000, 8, Norms::chi, 3}, many.data());
  for (const float w : many) squares += static_cast<double>(w) * w;
  CHECK(std::fabs(squares / 4000.0 - 8.0) < 0.25);
  CHECK(sparse::redraws(999, 1000) == 0);
  CHECK(sparse::redraws(1000, 1000) == 1);
  CHECK(sparse::redraws(123456, 0) == 0);
}

TEST_CASE("linear attention refuses what cannot be", "[sparse]") {
  sparse::register_cpu_kernels();
  PerformerRun run({"errors", {5}, {5}});
  Buffer<float> memory(100000, Purpose::scratch);
  const auto refused = [&](const std::function<void(sparse::PerformerForward&)>& change) -> std::string {
    sparse::PerformerForward args{run.inputs(), run.to(run.out, 5), memory.data(), memory.data(), memory.data()};
    change(args);
    try {
      sparse::performer_forward(Device::cpu, args);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  };
  CHECK_THAT(refused([](auto& args) { args.inputs.features = 0; }), Contains("m >= 1 features, got [N=2, D=8, m=0]"));
  CHECK_THAT(refused([](auto& args) { args.inputs.q.rows = 4; }),
             Equals("performer: q must match the batch: expected [queries=5, N=2, D=8], got 4 rows"));
  CHECK_THAT(refused([](auto& args) { args.inputs.k.stride = 15; }),
             Contains("k: expected a stride of at least N*D=16"));
  CHECK_THAT(refused([](auto& args) { args.inputs.projection = nullptr; }),
             Contains("projection: expected 160 elements"));
  CHECK_THAT(refused([](auto& args) { args.state = nullptr; }), Contains("state: expected"));
  const Lengths four = {0, 4}, falling = {0, -1};
  CHECK_THAT(refused([&](auto& args) {
               args.inputs.causal = true;
               args.inputs.key_offsets = four.data();
             }),
             Contains("causal attention is of one sequence: expected 5 at 1, got 4"));
  CHECK_THAT(refused([&](auto& args) { args.inputs.query_offsets = falling.data(); }),
             Contains("query_offsets: expected non-decreasing, got -1 after 0 at 1"));
  CHECK_THROWS_WITH(sparse::draw_projection({0, 8}, nullptr), Contains("expected m >= 1 features of D >= 1, got m=0"));
  CHECK_THROWS_WITH(sparse::redraws(1, -1), Contains("redraw period: expected at least 0"));
  CHECK_THROWS_WITH(sparse::performer_forward_scratch_bytes(Device::cuda, run.inputs()),
                    Contains("performer: no cuda kernel in this build"));
}
