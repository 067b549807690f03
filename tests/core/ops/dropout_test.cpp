#include "etc_core/ops/dropout.h"

#include "etc_core/ops/register.h"
#include "tests/reference/dropout.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;

namespace {

// Three examples, one of them empty, with their own ordinals.
const std::vector<std::int64_t> kOffsets = {0, 5, 5, 72};
const std::vector<std::uint64_t> kOrdinals = {7, 1000, 123456789012ull};
constexpr double kRounding = 0x1p-24;  // relative rounding error of one fp32 operation

ops::HiddenDropout dropout(float rate, const std::vector<std::int64_t>& offsets = kOffsets) {
  return {.rate = rate,
          .seed = 42,
          .layer = 3,
          .site = DropoutSite::global_feed_forward,
          .examples = 3,
          .offsets = offsets.data(),
          .sample_ordinals = kOrdinals.data()};
}

ReferenceDropout reference(float rate, const std::vector<std::int64_t>& offsets = kOffsets) {
  return {rate, 42, 3, 7, offsets, kOrdinals};  // 7: the eighth site
}

// The operator's y, in its own array or over its base.
std::vector<float> run(const ops::HiddenDropout& d, std::int64_t cols, const std::vector<float>& a,
                       const std::vector<float>& base, bool in_place) {
  Guarded y = in_place ? Guarded(base) : Guarded(static_cast<std::int64_t>(a.size()), 99.0f);
  ops::DropoutAdd args{.rows = static_cast<std::int64_t>(a.size()) / cols,
                       .cols = cols,
                       .a = a.data(),
                       .base = in_place ? y.data() : (base.empty() ? nullptr : base.data()),
                       .y = y.data(),
                       .dropout = d};
  ops::dropout_add(Device::cpu, args);
  REQUIRE(y.guards_intact());
  return y.values();
}

}  // namespace

TEST_CASE("the reference generators of dropout give their authors' numbers", "[core][ops]") {
  // Random123's known-answer tests for philox4x32 with 10 rounds; the third key and counter are digits of pi.
  REQUIRE(reference_philox({0, 0, 0, 0}, 0, 0) == Words4{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  const std::uint32_t ones = 0xffffffff;
  REQUIRE(reference_philox({ones, ones, ones, ones}, ones, ones) ==
          Words4{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  REQUIRE(reference_philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0) ==
          Words4{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
  REQUIRE(reference_split_mix(1234567, 0) == 6457827717110365317u);
  REQUIRE(reference_split_mix(1234567, 1) == 3203168211198807973u);
}

TEST_CASE("hidden dropout draws the bits of the generator, token by token", "[core][ops]") {
  ops::register_cpu_ops();
  for (const std::int64_t cols : {1, 6, 24, 67, 768}) {
    for (const float rate : {0.0f, 0.1f, 0.5f}) {
      CAPTURE(cols, rate);
      const auto a = random_floats(72 * cols, 1), base = random_floats(72 * cols, 2);
      const Reals factors = reference_dropout_factors(reference(rate), cols);
      REQUIRE(factors.size() == a.size());
      std::vector<float> expected(a.size()), expected_sum(a.size());
      for (std::size_t i = 0; i < a.size(); ++i) {
        expected[i] = factors[i] == 0 ? 0.0f : a[i] * (1.0f / (1.0f - rate));
        expected_sum[i] = base[i] + expected[i];
      }
      REQUIRE(same_bits(run(dropout(rate), cols, a, {}, false), expected));
      REQUIRE(same_bits(run(dropout(rate), cols, a, base, false), expected_sum));
      REQUIRE(same_bits(run(dropout(rate), cols, a, base, true), expected_sum));
    }
  }
}

TEST_CASE("hidden dropout equals its definition in double for awkward sizes and mixed magnitudes", "[core][ops]") {
  ops::register_cpu_ops();
  const std::vector<std::vector<std::int64_t>> all_offsets = {
      {0, 0, 0, 0}, {0, 0, 1, 1}, {0, 1, 2, 3}, {0, 0, 130, 131}, {0, 67, 67, 67}};
  for (const auto& offsets : all_offsets) {
    for (const std::int64_t cols : {1, 2, 3, 4, 5, 6, 10, 17, 130}) {
      for (const float rate : {0.0f, 0.1f, 0.75f, 1 - 0x1p-24f}) {
        CAPTURE(offsets, cols, rate);
        const auto a = mixed_floats(offsets.back() * cols, 3), base = mixed_floats(offsets.back() * cols, 4);
        const ReferenceDropout of = reference(rate, offsets);
        // 1-rate, 1/(1-rate), the product and the sum are each rounded once, at most relative to the terms.
        for (const Reals& added : {Reals{}, to_double(base)}) {
          const Reals mass = reference_dropout_add(of, cols, magnitudes(a), added.empty() ? added : magnitudes(base));
          const Reals expected = reference_dropout_add(of, cols, to_double(a), added);
          Reals tolerances;
          for (const double terms : mass) tolerances.push_back(4 * kRounding * terms);
          const auto given = added.empty() ? std::vector<float>{} : base;
          REQUIRE(near_each("y", run(dropout(rate, offsets), cols, a, given, false), expected, tolerances));
        }
      }
    }
  }
}

TEST_CASE("the gradient of hidden dropout is the same call, as central differences say", "[core][ops]") {
  ops::register_cpu_ops();
  const std::vector<std::int64_t> offsets = {0, 3, 3, 8};
  for (const std::int64_t cols : {1, 2, 6, 10}) {
    CAPTURE(cols);
    const auto a = mixed_floats(8 * cols, 5), dy = random_floats(8 * cols, 6);
    const ReferenceDropout of = reference(0.3f, offsets);
    const auto loss = [&](const Reals& x) {
      return inner_product(reference_dropout_add(of, cols, x, {}), to_double(dy));
    };
    // The loss is linear, so any step is exact. With a step of 1e6, the magnitude of the numbers, only the rounding in
    // double remains: 80 sums below 2^28, divided by twice the step.
    const Reals slopes = central_differences(loss, to_double(a), 1e6);
    const auto da = run(dropout(0.3f, offsets), cols, dy, {}, false);
    REQUIRE(near_all("da", da, slopes, 80 * 0x1p28 * 0x1p-53 / 1e6, 4 * kRounding));
  }
}

TEST_CASE("an example's dropout is the same alone and in a batch, for any thread count", "[core][ops]") {
  ops::register_cpu_ops();
  const std::int64_t rows = 72, cols = 40;
  const auto a = random_floats(rows * cols, 1);
  REQUIRE(same_bits_for_any_thread_count([&] { return run(dropout(0.3f), cols, a, {}, false); }));
  const auto batch = run(dropout(0.3f), cols, a, {}, false);
  const std::vector<std::int64_t> offsets = {0, 67};
  auto single = dropout(0.3f);
  single.examples = 1;
  single.offsets = offsets.data();
  single.sample_ordinals = kOrdinals.data() + 2;
  const std::vector<float> last(a.begin() + 5 * cols, a.end());
  REQUIRE(same_bits(run(single, cols, last, {}, false), {batch.begin() + 5 * cols, batch.end()}));
}
