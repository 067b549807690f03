// Attention with bf16 operands. The fp32 kernels, or the reference, get the same inputs, rounded beforehand. Results
// then differ only by the rounding of probabilities and score gradients, and by the order of sums.
#include <bit>
#include <cmath>

#include "etc_core/base/parallel.h"
#include "sparse/cpu/bf16_tiles.h"
#include "sparse/register_cpu.h"
#include "tests/sparse/attention_support.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/worst.h"

using namespace etc;
using namespace etc::test;
using Catch::Matchers::Contains;

namespace {

float rounded(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000u);
}

void round_all(Buffer<float>& values) {
  for (float& x : values) x = rounded(x);
}

struct BothTypes {
  AttentionProblem exact, reduced;
};

BothTypes problems(const AttentionCase& attention_case, Side side) {
  AttentionCase bf16 = attention_case;
  bf16.compute = ComputeType::bf16;
  const auto structure = std::make_shared<const Structure>(attention_case);
  BothTypes both{AttentionProblem(attention_case, structure, side), AttentionProblem(bf16, structure, side)};
  for (AttentionProblem* p : {&both.exact, &both.reduced}) {
    for (bench::RowBuffer* rows : {&p->q, &p->k[0], &p->k[1], &p->v[0], &p->v[1]}) round_all(rows->values);
    round_all(p->rel);
  }
  return both;
}

float largest(const bench::RowBuffer& rows) {
  float most = 0;
  for (std::int64_t r = 0; r < rows.count; ++r) {
    for (std::int64_t c = 0; c < rows.width; ++c) most = std::max(most, std::abs(rows.at(r, c)));
  }
  return most;
}

// {name, lengths, globals, radius, N, D, R, labels, magnitude, dropout, padding, seed}
const std::vector<AttentionCase>& cases() {
  static const std::vector<AttentionCase> all = {
      {"one token, no globals", {1}, {0}, 3, 2, 8, 0, Labels::none},
      {"one token each", {1}, {1}, 5, 1, 4, 6, Labels::document},
      {"shorter than the radius", {5}, {3}, 9, 2, 10, 9, Labels::document},
      {"no long tokens", {0}, {20}, 4, 2, 16, 12, Labels::document},
      {"an example without anything", {9, 0, 5}, {4, 0, 3}, 3, 2, 8, 8, Labels::document},
      {"document, D = 64", {130}, {23}, 20, 2, 64, 32, Labels::document},
      {"hard g2l", {200}, {20}, 12, 1, 16, 12, Labels::hard},
      {"scattered masks and labels", {75, 33}, {17, 40}, 11, 2, 16, 32, Labels::scattered, 1.0f, 0.0f, 7},
      {"D = 1", {37}, {5}, 4, 2, 1, 7, Labels::scattered},
      {"D = 6", {37}, {5}, 4, 3, 6, 9, Labels::scattered, 1.0f, 0.0f, 1},
      {"D = 80", {50}, {7}, 6, 1, 80, 9, Labels::document},
      {"D = 150", {50}, {7}, 6, 1, 150, 9, Labels::document},
      {"D = 300", {50}, {7}, 6, 1, 300, 0, Labels::none},
      {"R of 255", {40}, {9}, 12, 1, 8, 255, Labels::scattered},
      {"several segments", {1200}, {5}, 9, 1, 32, 8, Labels::document},
      {"radius beyond a segment", {1100}, {2}, 600, 1, 2, 8, Labels::document},
      {"large scores", {64}, {8}, 10, 1, 16, 8, Labels::scattered, 5.0f},
      {"scores that differ by more than a power of two holds", {200}, {8}, 60, 1, 16, 8, Labels::scattered, 30.0f},
  };
  return all;
}

}  // namespace

TEST_CASE("bf16 attention differs from fp32 attention by the rounding of probabilities", "[sparse]") {
  sparse::register_cpu_kernels();
  for (const AttentionCase& c : cases()) {
    for (const Side side : {Side::long_side, Side::global_side}) {
      INFO(describe(c, side));
      BothTypes both = problems(c, side);
      both.exact.forward();
      both.reduced.forward();
      // Probabilities sum to 1, each with an error of at most half a unit of 2^-8; sums of D products in another order.
      const float values = std::max(largest(both.exact.v[0]), largest(both.exact.v[1]));
      const float tolerance = values * (0x1p-8f + 1e-4f * c.magnitude * c.magnitude);
      double worst = 0;
      for (std::int64_t r = 0; r < both.exact.out.count; ++r) {
        for (std::int64_t d = 0; d < both.exact.out.width; ++d) {
          test::keep_worst(worst, std::abs(both.exact.out.at(r, d) - both.reduced.out.at(r, d)));
        }
      }
      CHECK(worst <= tolerance);
      CHECK(both.reduced.out.guards_intact());
      for (std::int64_t i = 0; i < both.exact.lse.size(); ++i) {
        const bool seen = std::isfinite(both.exact.lse[i]);
        REQUIRE(seen == std::isfinite(both.reduced.lse[i]));
        if (seen) REQUIRE(std::abs(both.exact.lse[i] - both.reduced.lse[i]) < 1e-4f * c.magnitude * c.magnitude);
      }
    }
  }
}

TEST_CASE("in bf16 the first key that a query sees counts, however small its score is", "[sparse]") {
  sparse::register_cpu_kernels();
  const AttentionCase c{"small scores", {200}, {3}, 20, 1, 64, 0, Labels::none};
  BothTypes both = problems(c, Side::long_side);
  for (AttentionProblem* p : {&both.exact, &both.reduced}) {
    // All scores are -4·8·64/sqrt(64) = -256, and exp(-256) is 0 in fp32.
    for (std::int64_t n = 0; n < 200; ++n) std::fill_n(&p->q.values[n * p->q.stride], 64, 4.0f);
    for (int t = 0; t < 2; ++t) {
      for (std::int64_t n = 0; n < p->k[t].count; ++n) {
        std::fill_n(&p->k[t].values[n * p->k[t].stride], 64, -8.0f);
      }
    }
    p->forward();
  }
  for (std::int64_t i = 0; i < 200; ++i) {
    CAPTURE(i);
    REQUIRE(std::abs(both.exact.lse[i] - both.reduced.lse[i]) < 1e-3f);
    for (std::int64_t d = 0; d < 64; ++d)
      REQUIRE(std::abs(both.exact.out.at(i, d) - both.reduced.out.at(i, d)) < 1e-2f);
  }
}

// Long examples have longer segments.
TEST_CASE("bf16 attention of thousands of tokens has the outputs and gradients of fp32, with one thread and four",
          "[sparse]") {
  sparse::register_cpu_kernels();
  const OneThread one_thread;
  const AttentionCase c{"long", {4200, 40}, {6, 3}, 20, 1, 64, 12, Labels::document};
  BothTypes both = problems(c, Side::long_side);
  std::vector<float> first;
  for (AttentionProblem* p : {&both.exact, &both.reduced}) {
    round_all(p->dout.values);
    p->forward();
    p->backward();
  }
  const auto rows = [](const AttentionProblem& p) {
    return std::vector<const bench::RowBuffer*>{&p.out, &p.dq, &p.dk[0], &p.dk[1], &p.dv[0], &p.dv[1]};
  };
  const auto exact = rows(both.exact), reduced = rows(both.reduced);
  for (std::size_t n = 0; n < exact.size(); ++n) {
    CAPTURE(n);
    double worst = 0;
    for (std::int64_t r = 0; r < exact[n]->count; ++r) {
      for (std::int64_t d = 0; d < exact[n]->width; ++d) {
        test::keep_worst(worst, std::abs(exact[n]->at(r, d) - reduced[n]->at(r, d)));
      }
    }
    CHECK(worst <= 0x1p-6f * largest(*exact[n]));
    CHECK(worst > 0);
    CHECK(reduced[n]->guards_intact());
    first.insert(first.end(), reduced[n]->values.begin(), reduced[n]->values.end());
  }
  set_thread_count(4);
  both.reduced.forward();
  both.reduced.backward();
  std::vector<float> second;
  for (const bench::RowBuffer* of : rows(both.reduced))
    second.insert(second.end(), of->values.begin(), of->values.end());
  CHECK(test::same_bits(first, second));
}

TEST_CASE("bf16 attention carries running scores like fp32 attention", "[sparse]") {
  sparse::register_cpu_kernels();
  const AttentionCase c{"scores", {150, 7}, {23, 2}, 12, 2, 16, 12, Labels::document};
  BothTypes both = problems(c, Side::long_side);
  const Structure& structure = *both.exact.structure;
  sparse::ScoreOptions options;
  options.layers = 3;
  options.heads = c.heads;
  options.types = {true, true, false, false};
  options.keep_last = true;
  std::vector<float> running[2];
  int which = 0;
  for (AttentionProblem* p : {&both.exact, &both.reduced}) {
    sparse::ScoreState state(options, structure.operators());
    for (std::int64_t layer = 0; layer < options.layers; ++layer) {
      const auto scores = state.forward(layer, sparse::kLongAttention);
      p->forward(scores[0], scores[1]);
    }
    const sparse::TypeTiles& window = structure.tiles(sparse::kL2l);
    running[which].resize(static_cast<std::size_t>(sparse::external_score_elements(window, c.heads)));
    state.export_running(sparse::kL2l, running[which++].data());
  }
  // The products of rounded numbers are exact; their sums differ by a few units in the last place.
  double largest_score = 0, worst = 0;
  for (std::size_t i = 0; i < running[0].size(); ++i) {
    largest_score = std::max(largest_score, std::abs(static_cast<double>(running[0][i])));
    test::keep_worst(worst, std::abs(static_cast<double>(running[0][i]) - running[1][i]));
  }
  CHECK(largest_score > 1);
  CHECK(worst < 1e-5 * largest_score);
}

TEST_CASE("bf16 attention has the same bits on 1, 2 and 4 threads, and alone as in a batch", "[sparse]") {
  sparse::register_cpu_kernels();
  const int before = thread_count();
  const AttentionCase c{"ragged", {1100, 3, 200}, {40, 2, 17}, 30, 2, 24, 12, Labels::document};
  for (const Side side : {Side::long_side, Side::global_side}) {
    std::vector<std::vector<float>> outs;
    for (const int threads : {1, 2, 4}) {
      set_thread_count(threads);
      BothTypes both = problems(c, side);
      both.reduced.forward();
      outs.emplace_back(both.reduced.out.values.begin(), both.reduced.out.values.end());
    }
    CHECK(outs[0] == outs[1]);
    CHECK(outs[0] == outs[2]);

    AttentionCase alone = c;
    alone.lengths = {c.lengths[2]};
    alone.globals = {c.globals[2]};
    BothTypes batch = problems(c, side), one = problems(alone, side);
    const Structure& structure = *batch.reduced.structure;
    const bool is_long = side == Side::long_side;
    const std::int64_t query = is_long ? structure.long_offsets[2] : structure.global_offsets[2];
    const std::int64_t key[2] = {query, is_long ? structure.global_offsets[2] : structure.long_offsets[2]};
    const auto copy = [](const bench::RowBuffer& from, std::int64_t first, bench::RowBuffer& to) {
      for (std::int64_t r = 0; r < to.count; ++r) {
        for (std::int64_t d = 0; d < to.width; ++d) to.values[r * to.stride + d] = from.at(first + r, d);
      }
    };
    copy(batch.reduced.q, query, one.reduced.q);
    for (int t = 0; t < 2; ++t) {
      copy(batch.reduced.k[t], key[t], one.reduced.k[t]);
      copy(batch.reduced.v[t], key[t], one.reduced.v[t]);
    }
    std::copy(batch.reduced.rel.begin(), batch.reduced.rel.end(), one.reduced.rel.begin());
    std::copy(batch.reduced.rel_bias.begin(), batch.reduced.rel_bias.end(), one.reduced.rel_bias.begin());
    batch.reduced.forward();
    one.reduced.forward();
    for (std::int64_t r = 0; r < one.reduced.out.count; ++r) {
      for (std::int64_t d = 0; d < one.reduced.out.width; ++d) {
        REQUIRE(batch.reduced.out.at(query + r, d) == one.reduced.out.at(r, d));
      }
    }
  }
  set_thread_count(before);
}

// The term cases whose tables are supported in bf16.
bool takes_bf16(const AttentionCase& c) {
  return !c.parts.key_vectors && !c.parts.products && !c.parts.value_vectors;
}

TEST_CASE("bf16 attention with dropout equals the reference in values and gradients", "[sparse]") {
  sparse::register_cpu_kernels();
  const OneThread one_thread;
  for (const AttentionCase& c : attention_cases()) {
    for (const Side side : {Side::long_side, Side::global_side}) {
      const Stack stack{c, side, 1, {}, false, false, Device::cpu, true};
      const StackResult result = run_stack(stack);
      CHECK(compare_with_reference(stack, result) == "");
      const AttentionProblem& p = *result.layers[0];
      for (const bench::RowBuffer* rows : {&p.out, &p.dq, &p.dk[0], &p.dk[1], &p.dv[0], &p.dv[1]}) {
        CHECK(rows->guards_intact());
      }
    }
  }
}

TEST_CASE("bf16 attention with running scores, recomputed or not, equals the reference through several layers",
          "[sparse]") {
  sparse::register_cpu_kernels();
  const OneThread one_thread;
  for (const AttentionCase& c : attention_cases()) {
    if (c.lengths[0] > 80) continue;
    for (const Side side : {Side::long_side, Side::global_side}) {
      for (const bool mean : {false, true}) {
        const Stack stack{c, side, 3, {true, true, true, true}, mean, mean, Device::cpu, true};
        CHECK(compare_with_reference(stack, run_stack(stack)) == "");
      }
    }
  }
}

TEST_CASE("bf16 attention with factors, biases and labels by distance equals the reference in values and gradients",
          "[sparse]") {
  sparse::register_cpu_kernels();
  const OneThread one_thread;
  int run = 0;
  for (const AttentionCase& c : term_cases()) {
    if (!takes_bf16(c)) continue;
    for (const Side side : {Side::long_side, Side::global_side}) {
      const Stack alone{c, side, 1, {}, false, false, Device::cpu, true};
      CHECK(compare_with_reference(alone, run_stack(alone)) == "");
      ++run;
      if (c.lengths[0] > 80) continue;
      const Stack stack{c, side, 3, {true, true, true, true}, true, false, Device::cpu, true};
      CHECK(compare_with_reference(stack, run_stack(stack)) == "");
    }
  }
  CHECK(run >= 4);
}

TEST_CASE("backward in bf16 rewinds running scores to the bits they had before the layer", "[sparse]") {
  sparse::register_cpu_kernels();
  AttentionCase c{"rewound", {300, 41}, {23, 60}, 21, 2, 24, 12, Labels::document, 1.0f, 0.1f};
  c.compute = ComputeType::bf16;
  for (const Side side : {Side::long_side, Side::global_side}) {
    AttentionProblem p(c, std::make_shared<const Structure>(c), side);
    Buffer<sparse::ScoreElement> running[2];
    Buffer<float> gradient[2];
    for (int t = 0; t < 2; ++t) {
      const std::int64_t elements = sparse::score_elements(p.tiles(t), c.heads);
      running[t] = Buffer<sparse::ScoreElement>(elements, Purpose::scores);
      gradient[t] = Buffer<float>(elements, Purpose::scores);
      running[t].zero();
      gradient[t].zero();
    }
    const auto forward = [&](sparse::ScoreMode mode) {
      p.forward({mode, running[0].data(), 1.0f, 0}, {mode, running[1].data(), 1.0f, 0});
    };
    forward(sparse::ScoreMode::write);
    const std::vector<sparse::ScoreElement> before[2] = {{running[0].begin(), running[0].end()},
                                                         {running[1].begin(), running[1].end()}};
    forward(sparse::ScoreMode::add);
    p.backward({sparse::ScoreGradientMode::inner, running[0].data(), gradient[0].data(), 1.0f, true, 0},
               {sparse::ScoreGradientMode::inner, running[1].data(), gradient[1].data(), 1.0f, true, 0});
    for (int t = 0; t < 2; ++t) {
      CHECK(std::equal(before[t].begin(), before[t].end(), running[t].begin()));
    }
  }
}

TEST_CASE("int8 is no type of attention", "[sparse]") {
  sparse::register_cpu_kernels();
  AttentionCase c{"refused", {20}, {4}, 3, 1, 8, 8, Labels::document};
  c.compute = ComputeType::int8;
  AttentionProblem p(c, std::make_shared<const Structure>(c), Side::long_side);
  CHECK_THROWS_WITH(p.forward(), Contains("compute: expected fp32 or bf16, got int8"));
  CHECK_THROWS_WITH(p.backward(), Contains("compute: expected fp32 or bf16, got int8"));
}
