#include "etc_core/ops/dropout.h"

#include "etc_core/ops/register.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;

namespace {

// Three examples, one of them empty, with their own ordinals.
const std::vector<std::int64_t> kOffsets = {0, 5, 5, 72};
const std::vector<std::uint64_t> kOrdinals = {7, 1000, 123456789012ull};

ops::HiddenDropout dropout(float rate) {
  ops::HiddenDropout d;
  d.rate = rate;
  d.seed = 42;
  d.layer = 3;
  d.site = DropoutSite::global_feed_forward;
  d.examples = 3;
  d.offsets = kOffsets.data();
  d.sample_ordinals = kOrdinals.data();
  return d;
}

float expected_factor(float rate, std::int64_t row, std::int64_t col) {
  std::size_t b = 0;
  while (row >= kOffsets[b + 1]) ++b;
  const std::uint64_t key = dropout_key(42, kOrdinals[b], 3, DropoutSite::global_feed_forward);
  const auto token = static_cast<std::uint32_t>(row - kOffsets[b]);
  const std::uint32_t bits =
      dropout_block(key, 0, token, static_cast<std::uint32_t>(col / 4))[static_cast<std::size_t>(col % 4)];
  return bits >= dropout_threshold(rate) ? 1.0f / (1.0f - rate) : 0.0f;
}

}  // namespace

TEST_CASE("hidden dropout draws the bits of the generator, token by token", "[core][ops]") {
  ops::register_cpu_ops();
  const std::int64_t rows = 72;
  for (const std::int64_t cols : {1, 6, 24, 67, 768}) {
    for (const float rate : {0.0f, 0.1f, 0.5f}) {
      CAPTURE(cols, rate);
      const auto a = random_floats(rows * cols, 1), base = random_floats(rows * cols, 2);
      Guarded alone(rows * cols), sum(rows * cols);
      ops::DropoutAdd args;
      args.rows = rows;
      args.cols = cols;
      args.a = a.data();
      args.y = alone.data();
      args.dropout = dropout(rate);
      ops::dropout_add(Device::cpu, args);
      args.base = base.data();
      args.y = sum.data();
      ops::dropout_add(Device::cpu, args);
      std::vector<float> expected(a.size()), expected_sum(a.size());
      for (std::int64_t i = 0; i < rows * cols; ++i) {
        const auto at = static_cast<std::size_t>(i);
        expected[at] = a[at] * (rate == 0 ? 1.0f : expected_factor(rate, i / cols, i % cols));
        expected_sum[at] = base[at] + expected[at];
      }
      REQUIRE(alone.values() == expected);
      REQUIRE(same_bits(sum.values(), expected_sum));
      REQUIRE(alone.guards_intact());
      REQUIRE(sum.guards_intact());
      // In place, as an accumulation.
      auto accumulated = base;
      args.base = accumulated.data();
      args.y = accumulated.data();
      ops::dropout_add(Device::cpu, args);
      REQUIRE(same_bits(accumulated, expected_sum));
    }
  }
}

TEST_CASE("an example's dropout is the same alone and in a batch, for any thread count", "[core][ops]") {
  ops::register_cpu_ops();
  const std::int64_t rows = 72, cols = 40;
  const auto a = random_floats(rows * cols, 1);
  const auto run = [&](const ops::HiddenDropout& d, std::int64_t first, std::int64_t count) {
    std::vector<float> y(static_cast<std::size_t>(count * cols));
    ops::DropoutAdd args;
    args.rows = count;
    args.cols = cols;
    args.a = a.data() + first * cols;
    args.y = y.data();
    args.dropout = d;
    ops::dropout_add(Device::cpu, args);
    return y;
  };
  REQUIRE(same_bits_for_any_thread_count([&] { return run(dropout(0.3f), 0, rows); }));
  const auto batch = run(dropout(0.3f), 0, rows);
  const std::vector<std::int64_t> offsets = {0, 67};
  auto single = dropout(0.3f);
  single.examples = 1;
  single.offsets = offsets.data();
  single.sample_ordinals = kOrdinals.data() + 2;
  REQUIRE(same_bits(run(single, 5, 67), {batch.begin() + 5 * cols, batch.end()}));
}
