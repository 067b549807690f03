// Properties of the operators without a layer stack: dense attention, numbers of the specification, dropout statistics,
// invalid arguments, accumulation.
#include <cmath>

#include "sparse/attention_statistics.h"
#include "sparse/register_cpu.h"
#include "tests/sparse/attention_support.h"
#include "tests/support/catch.h"

using namespace etc;
using namespace etc::test;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

TEST_CASE("long attention equals dense attention when the window covers the input", "[sparse]") {
  sparse::register_cpu_kernels();
  // The same tokens as long tokens with a window over all of them, and as global tokens, which always see each other.
  const AttentionCase window{"window", {45}, {0}, 44, 2, 16, 0, Labels::none};
  const AttentionCase dense{"dense", {0}, {45}, 1, 2, 16, 0, Labels::none};
  AttentionProblem a(window, std::make_shared<const Structure>(window), Side::long_side);
  AttentionProblem b(dense, std::make_shared<const Structure>(dense), Side::global_side);
  b.q = bench::RowBuffer(45, 32, 0);
  std::copy(a.q.values.begin(), a.q.values.end(), b.q.values.begin());
  std::copy(a.k[0].values.begin(), a.k[0].values.end(), b.k[0].values.begin());
  std::copy(a.v[0].values.begin(), a.v[0].values.end(), b.v[0].values.begin());
  std::copy(a.dout.values.begin(), a.dout.values.end(), b.dout.values.begin());
  a.forward();
  b.forward();
  a.backward();
  b.backward();
  const float tolerance = 64 * 0x1p-24f * 4.0f;  // D + keys roundings of terms of size about 1
  for (std::int64_t i = 0; i < a.out.values.size(); ++i) {
    CHECK(std::fabs(a.out.values[i] - b.out.values[i]) <= tolerance);
    CHECK(std::fabs(a.dq.values[i] - b.dq.values[i]) <= 8 * tolerance);
    CHECK(std::fabs(a.dk[0].values[i] - b.dk[0].values[i]) <= 8 * tolerance);
  }
}

TEST_CASE("a masked key has no influence, whatever its value", "[sparse]") {
  sparse::register_cpu_kernels();
  const AttentionCase c{"hard", {64}, {4}, 3, 1, 8, 12, Labels::hard};
  AttentionProblem p(c, std::make_shared<const Structure>(c), Side::global_side);
  p.forward();
  const float before = p.out.at(0, 0);
  for (std::int64_t d = 0; d < 8; ++d) {
    p.k[1].values[40 * p.k[1].stride + d] = 1e4f;  // in a sentence other than that of global token 0
    p.v[1].values[40 * p.v[1].stride + d] = 1e4f;
  }
  p.forward();
  CHECK(p.out.at(0, 0) == before);
}

TEST_CASE("dropout keeps the right share, and each value of rate, seed, layer and ordinal its own bits", "[sparse]") {
  sparse::register_cpu_kernels();
  // With q = 0 and v = 1 every probability is 1/keys, and out is the kept fraction divided by (1 - rate).
  const AttentionCase c{"dropout", {256}, {64}, 127, 2, 4, 0, Labels::none, 1.0f, 0.25f};
  const auto structure = std::make_shared<const Structure>(c);
  const auto kept_share = [&](std::uint64_t seed, std::uint32_t layer, std::int64_t ordinal) {
    AttentionCase own = c;
    own.seed = seed;
    AttentionProblem p(own, structure, Side::long_side, layer);
    p.q.values.zero();
    std::fill(p.v[0].values.begin(), p.v[0].values.end(), 1.0f);
    std::fill(p.v[1].values.begin(), p.v[1].values.end(), 1.0f);
    p.ordinals = {ordinal};
    p.forward();
    return std::vector<float>(p.out.values.begin(), p.out.values.end());
  };
  const std::vector<float> shares = kept_share(1, 0, 5);
  double mean = 0.0;
  for (float share : shares) mean += share;
  mean /= static_cast<double>(shares.size());
  // Every row averages at least 192 draws; 512 rows (the components of a row are equal): 5 standard deviations.
  CHECK(std::fabs(mean - 1.0) < 5.0 * std::sqrt(0.25 / 0.75 / (512.0 * 192.0)));
  CHECK(shares == kept_share(1, 0, 5));
  CHECK(shares != kept_share(2, 0, 5));
  CHECK(shares != kept_share(1, 1, 5));
  CHECK(shares != kept_share(1, 0, 6));
}

TEST_CASE("parameter gradients accumulate, all others are overwritten", "[sparse]") {
  sparse::register_cpu_kernels();
  const AttentionCase c{"document", {40}, {6}, 5, 1, 8, 8, Labels::document};
  for (Side side : {Side::long_side, Side::global_side}) {
    AttentionProblem p(c, std::make_shared<const Structure>(c), side);
    p.forward();
    p.backward();
    const float dq = p.dq.at(3, 2), drel = p.drel[0], drel_bias = p.drel_bias[0];
    p.backward();
    CHECK(p.dq.at(3, 2) == dq);
    CHECK(p.drel[0] == 2.0f * drel);
    CHECK(p.drel_bias[0] == 2.0f * drel_bias);
  }
}

TEST_CASE("statistics compare a layer with one of the same tiles only", "[sparse]") {
  sparse::register_cpu_kernels();
  const AttentionCase c{"document", {40}, {6}, 5, 2, 8, 8, Labels::document};
  const Structure structure(c), other(c);
  const Buffer<float> values(40 * 16, Purpose::scratch), table(8 * 16, Purpose::scratch);
  const sparse::Rows longs{values.data(), 16, 40}, globals{values.data(), 16, 6};
  sparse::AttentionStatistics args;
  args.inputs = {
      2, 8, longs, {{longs, longs}, {globals, globals}}, {table.data(), table.data(), 8}, &structure.long_tiles, {}};
  sparse::AttentionInputs before = args.inputs;
  before.tiles = &other.long_tiles;
  args.before = &before;
  CHECK_THROWS_WITH(sparse::attention_statistics(Device::cpu, args),
                    Contains("statistics: before: expected a layer of the same tiles"));
}

TEST_CASE("arguments that do not fit are refused with their shapes", "[sparse]") {
  sparse::register_cpu_kernels();
  const AttentionCase c{"document", {40}, {6}, 5, 2, 8, 8, Labels::document};
  const Structure structure(c);
  const Buffer<float> values(40 * 16, Purpose::scratch), table(8 * 16, Purpose::scratch);
  const sparse::Rows longs{values.data(), 16, 40}, globals{values.data(), 16, 6};
  sparse::AttentionForward args;
  args.inputs = {
      2, 8, longs, {{longs, longs}, {globals, globals}}, {table.data(), table.data(), 8}, &structure.long_tiles, {}};
  const auto refuses = [](const sparse::AttentionForward& call, const std::string& message) {
    CHECK_THROWS_WITH(sparse::attention_forward(Device::cpu, call), Contains(message));
  };
  auto bad = args;
  bad.inputs.keys[0].k.rows = 39;
  refuses(bad, "long_attention: k of l2l must match the batch: expected [keys=40, N=2, D=8], got [keys=39, N=2, D=8]");
  bad = args;
  bad.inputs.keys[1].v.rows = 7;
  refuses(bad, "v of l2g must match the batch: expected [keys=6, N=2, D=8], got [keys=7, N=2, D=8]");
  bad = args;
  bad.inputs.q.data = nullptr;
  refuses(bad, "q: expected [queries=40, N=2, D=8], got null");
  bad = args;
  bad.inputs.keys[0].v.stride = 15;
  refuses(bad, "v of l2l: expected rows at least N*D=16 numbers apart, got 15");
  bad = args;
  bad.inputs.heads = 0;
  refuses(bad, "long_attention: expected N >= 1 heads of D >= 1, got [N=0, D=8]");
  bad = args;
  bad.inputs.tiles = nullptr;
  refuses(bad, "tiles: expected those of the batch, got null");
  bad = args;
  bad.inputs.relative.labels = 7;
  refuses(bad, "rel must match labels.l2l: expected R=8, got R=7");
  bad.inputs.relative.labels = 0;
  refuses(bad, "rel: expected R from 1 to 65536, got R=0");
  bad.inputs.relative = {nullptr, table.data(), 7};  // biases alone also need a row for every label
  refuses(bad, "rel must match labels.l2l: expected R=8, got R=7");
  bad = args;
  bad.inputs.dropout.rate = 1.0f;
  refuses(bad, "dropout: expected a rate in [0, 1), got 1");
  bad.inputs.dropout.rate = 0.5f;
  refuses(bad, "dropout: expected sample ordinals, got null");
  refuses(args, "out must match the batch: expected [queries=40, N=2, D=8], got [queries=0, N=2, D=8]");
  Buffer<float> out(40 * 16, Purpose::scratch), lse(80, Purpose::scratch);
  args.out = {out.data(), 16, 40};
  refuses(args, "lse: expected 80 elements, got null");
  args.lse = lse.data();
  bad = args;
  bad.scores[1].mode = sparse::ScoreMode::write;
  refuses(bad, "scores.l2g: expected running scores, got null");
  Buffer<sparse::ScoreElement> running(sparse::score_elements(structure.tiles(sparse::kL2g), 2) + 1, Purpose::scores);
  bad.scores[1].running = running.data() + 1;
  refuses(bad, "scores.l2g: expected memory aligned to 64 bytes");
  refuses(args, "scratch: expected");

  sparse::AttentionBackward backward;
  backward.inputs = args.inputs;
  backward.out = backward.dout = longs;
  backward.lse = lse.data();
  backward.dq = {out.data(), 16, 40};
  backward.dkeys[0] = {backward.dq, backward.dq};
  CHECK_THROWS_WITH(sparse::attention_backward(Device::cpu, backward), Contains("dk of l2g must match the batch"));
  backward.dkeys[1] = {{out.data(), 16, 6}, {out.data(), 16, 6}};
  CHECK_THROWS_WITH(sparse::attention_backward(Device::cpu, backward),
                    Contains("drel: expected 128 elements, got null"));
  backward.inputs.relative.vectors = nullptr;
  CHECK_THROWS_WITH(sparse::attention_backward(Device::cpu, backward),
                    Contains("drel_bias: expected 16 elements, got null"));
  backward.drelative = {out.data(), out.data()};
  backward.scores[0].mode = sparse::ScoreGradientMode::first;
  CHECK_THROWS_WITH(sparse::attention_backward(Device::cpu, backward),
                    Contains("scores.l2l: expected running scores and their gradient, got null"));

  Structure changed(c);
  changed.long_tiles.types[0].window = false;
  bad = args;
  bad.inputs.tiles = &changed.long_tiles;
  refuses(bad, "long_attention: tiles of l2l: expected a window");

  sparse::AttentionForward global;
  global.inputs = {2, 8, globals, {{globals, globals}, {globals, longs}}, {}, &structure.global_tiles, {}};
  refuses(global,
          "global_attention: k of g2l must match the batch: expected [keys=40, N=2, D=8], got [keys=6, N=2, D=8]");
  CHECK_THROWS_WITH(sparse::attention_forward_slot(Device::cuda, args),
                    Equals("attention: no cuda kernel in this build (configure with -DETC_CUDA=ON)"));
}

TEST_CASE("biases without vectors are a table whose vectors are zero", "[sparse]") {
  sparse::register_cpu_kernels();
  for (ComputeType compute : {ComputeType::fp32, ComputeType::bf16}) {
    AttentionCase c{"scattered", {700, 21}, {33, 6}, 7, 2, 16, 9, Labels::scattered};
    c.compute = compute;
    AttentionCase alone = c;
    alone.parts.vectors = false;
    const auto structure = std::make_shared<const Structure>(c);
    for (Side side : {Side::long_side, Side::global_side}) {
      AttentionProblem zeros(c, structure, side), biases(alone, structure, side);
      zeros.rel.zero();
      for (AttentionProblem* p : {&zeros, &biases}) {
        p->forward();
        p->setup.compute = ComputeType::fp32;
        p->backward();
      }
      CHECK(same_bits(zeros.out.values, biases.out.values));
      CHECK(same_bits(zeros.lse, biases.lse));
      CHECK(same_bits(zeros.dk[0].values, biases.dk[0].values));
      CHECK(same_bits(zeros.drel_bias, biases.drel_bias));
      CHECK(std::equal(zeros.dq.values.begin(), zeros.dq.values.end(), biases.dq.values.begin()));  // -0 equals 0
      CHECK(biases.drel[0] == 0.0f);
      // The biases have an effect.
      biases.setup.relative_labels = 0;
      biases.setup.compute = compute;
      biases.forward();
      CHECK_FALSE(same_bits(zeros.out.values, biases.out.values));
    }
  }
}
