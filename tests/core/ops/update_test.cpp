// The arithmetic of optimisers, block by block, against the formulas in double.
#include "etc_core/ops/update.h"

#include <cmath>

#include "etc_core/ops/register.h"
#include "tests/reference/update.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;

namespace {

constexpr double kUpdateRounding = 0x1p-24;  // relative rounding error of one fp32 operation
constexpr double kScale = 0.7, kDecay = 0.01, kRate = 0.1;
const ops::UpdateConstants kConstants{0.9f, 0.999f, 0.1f, 0.001f, 1e-6f, static_cast<float>(kScale)};

// One block with its numbers.
struct Owned {
  std::vector<float> g;
  Guarded m, v, w;

  ops::UpdateBlock block(bool adapted, double decay) {
    return {g.data(), m.data(), v.data(), w.data(), w.size(), static_cast<float>(decay), static_cast<float>(kRate),
            adapted};
  }
};

// Numbers of very different magnitude, as after some steps; v is not negative, and some m, v and g are 0.
Owned owned(std::int64_t size) {
  auto v = mixed_floats(size, 3);
  for (float& value : v) value = std::fabs(value);
  return {mixed_floats(size, 1), Guarded(mixed_floats(size, 2)), Guarded(v), Guarded(mixed_floats(size, 4))};
}

// The result of the formulas for the same numbers, and the tolerances for fp32.
struct Expected {
  ReferenceUpdate after;  // w before its step
  Reals u;
  Reals m_tolerance, v_tolerance, u_tolerance;
};

Expected expected_of(const Owned& of, double decay) {
  Expected made;
  made.after.decay = decay;
  ReferenceUpdate mass;  // computed from the magnitudes
  made.after.w = to_double(of.w.values());
  made.after.m = to_double(of.m.values());
  made.after.v = to_double(of.v.values());
  mass.w = magnitudes(of.w.values());
  mass.m = magnitudes(of.m.values());
  mass.v = made.after.v;
  made.after.take_gradient(reference_scale(kScale, to_double(of.g)));
  mass.take_gradient(reference_scale(kScale, magnitudes(of.g)));
  made.u = made.after.update();
  for (std::size_t i = 0; i < made.u.size(); ++i) {
    // The scale, the scaled gradient, the constant, its product and the sum: 5 roundings. In v the first two count
    // twice, and the square is also rounded: 8. No term is negative.
    made.m_tolerance.push_back(5 * kUpdateRounding * mass.m[i]);
    made.v_tolerance.push_back(8 * kUpdateRounding * mass.v[i]);
    // m as above; half of v's 8, the root, epsilon, the sum below, the quotient and the sum of both terms: 9; the
    // decay, its product and the sum: 3. Each relative to terms that are at most these.
    const double divided = mass.m[i] / (std::sqrt(mass.v[i]) + mass.epsilon);
    made.u_tolerance.push_back(kUpdateRounding * (14 * divided + 3 * decay * mass.w[i]));
  }
  return made;
}

// Requires w = w_before - rate·u.
void require_weights(const Owned& got, const Expected& expected, double rate) {
  const Reals after = reference_axpy(-rate, expected.u, expected.after.w);
  Reals tolerances;  // u's, the rate and its product, and the difference
  for (std::size_t i = 0; i < after.size(); ++i) {
    tolerances.push_back(rate * (expected.u_tolerance[i] + 3 * kUpdateRounding * std::fabs(expected.u[i])) +
                         kUpdateRounding * std::fabs(after[i]) * (1 + 1e-6));
  }
  REQUIRE(near_each("w", got.w.values(), after, tolerances));
}

void require_moments(const Owned& got, const Expected& expected) {
  REQUIRE(near_each("m", got.m.values(), expected.after.m, expected.m_tolerance));
  REQUIRE(near_each("v", got.v.values(), expected.after.v, expected.v_tolerance));
  REQUIRE(got.m.guards_intact());
  REQUIRE(got.v.guards_intact());
  REQUIRE(got.w.guards_intact());
}

// One more and one less than a vector, than the 512 numbers whose updates are summed together, and than half a block.
constexpr std::int64_t kSizes[] = {1, 2, 6, 10, 15, 17, 511, 512, 513, 8191, 8193, ops::kBlockSize};

}  // namespace

TEST_CASE("updates of moments and weights equal AdamW's formula in double", "[core][ops]") {
  ops::register_cpu_ops();
  for (const double decay : {0.0, kDecay}) {
    // All sizes at once, as blocks of one call.
    std::vector<Owned> all;
    std::vector<Expected> expected;
    std::vector<ops::UpdateBlock> blocks;
    for (const std::int64_t size : kSizes) all.push_back(owned(size));
    for (Owned& one : all) {
      expected.push_back(expected_of(one, decay));
      blocks.push_back(one.block(false, decay));
    }
    const auto norms = ops::update_moments(Device::cpu, kConstants, blocks);
    for (std::size_t i = 0; i < all.size(); ++i) {
      CAPTURE(decay, blocks[i].count);
      require_moments(all[i], expected[i]);
      require_weights(all[i], expected[i], kRate);
      REQUIRE(norms[i].weights == 0);
      REQUIRE(norms[i].update == 0);
    }
  }
}

TEST_CASE("an adapted block keeps its weights until its norms are known, and these equal LAMB's formula",
          "[core][ops]") {
  ops::register_cpu_ops();
  for (const double decay : {0.0, kDecay}) {
    for (const std::int64_t size : kSizes) {
      CAPTURE(decay, size);
      Owned one = owned(size);
      const Expected expected = expected_of(one, decay);
      const auto before = one.w.values();
      ops::UpdateBlock block = one.block(true, decay);
      const auto norms = ops::update_moments(Device::cpu, kConstants, {&block, 1});
      require_moments(one, expected);
      REQUIRE(same_bits(one.w.values(), before));
      // Squares of fp32 numbers are exact in double, and each of the two sums is rounded `size` times; u² is off by
      // (2|u| + t)·t if u is off by t.
      const double sums = 2 * static_cast<double>(size) * 0x1p-53;
      const double weights = reference_sum_of_squares(expected.after.w), update = reference_sum_of_squares(expected.u);
      double update_tolerance = sums * update;
      for (std::size_t i = 0; i < expected.u.size(); ++i) {
        const double t = expected.u_tolerance[i];
        update_tolerance += (2 * std::fabs(expected.u[i]) + t) * t;
      }
      REQUIRE(std::fabs(norms[0].weights - weights) <= sums * weights);
      REQUIRE(std::fabs(norms[0].update - update) <= update_tolerance);
      block.rate = 0.25f;  // as the optimiser sets it once the ratio is known
      ops::update_weights(Device::cpu, kConstants, {&block, 1});
      require_weights(one, expected, 0.25);
      require_moments(one, expected);
    }
  }
}

TEST_CASE("sums of squares of gradients equal the sum in double, block by block", "[core][ops]") {
  ops::register_cpu_ops();
  std::vector<std::vector<float>> all;
  std::vector<ops::UpdateBlock> blocks;
  for (const std::int64_t size : kSizes) all.push_back(mixed_floats(size, static_cast<std::uint64_t>(size)));
  for (const auto& g : all) blocks.push_back({g.data(), nullptr, nullptr, nullptr, std::ssize(g), 0, 0, false});
  const auto sums = ops::gradient_squares(Device::cpu, blocks);
  REQUIRE(sums.size() == all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(all[i].size());
    const double expected = reference_sum_of_squares(to_double(all[i]));
    // No term is negative and the squares are exact, so each of the two sums is rounded at most `size` times.
    const double tolerance = 2 * static_cast<double>(all[i].size()) * 0x1p-53 * expected;
    REQUIRE(std::fabs(sums[i] - expected) <= tolerance);
  }
  for (const float bad : {std::nanf(""), INFINITY}) {
    const std::vector<float> g = {1, bad, 2};
    const ops::UpdateBlock block{g.data(), nullptr, nullptr, nullptr, 3, 0, 0, false};
    const double sum = ops::gradient_squares(Device::cpu, {&block, 1}).front();
    REQUIRE((std::isnan(bad) ? std::isnan(sum) : sum == INFINITY));
  }
  REQUIRE(ops::gradient_squares(Device::cpu, {}).empty());
  REQUIRE(ops::update_moments(Device::cpu, kConstants, {}).empty());
}

TEST_CASE("updates have the same bits for any thread count and whichever blocks are beside", "[core][ops]") {
  ops::register_cpu_ops();
  // Moments, weights and norms (as two floats each) of the blocks of the given sizes, every other one adapted.
  const auto run = [](const std::vector<std::int64_t>& sizes) {
    std::vector<Owned> all;
    std::vector<ops::UpdateBlock> blocks;
    std::vector<float> results;
    for (const std::int64_t size : sizes) all.push_back(owned(size));
    for (std::size_t i = 0; i < all.size(); ++i) blocks.push_back(all[i].block(i % 2 == 0, kDecay));
    const auto keep = [&](double sum) {
      results.push_back(static_cast<float>(sum));
      results.push_back(static_cast<float>(sum - static_cast<double>(results.back())));
    };
    for (const double sum : ops::gradient_squares(Device::cpu, blocks)) keep(sum);
    for (const ops::UpdateNorms& norms : ops::update_moments(Device::cpu, kConstants, blocks)) {
      keep(norms.weights);
      keep(norms.update);
    }
    ops::update_weights(Device::cpu, kConstants, blocks);
    for (const Owned& one : all) {
      for (const Guarded* array : {&one.m, &one.v, &one.w}) {
        const auto values = array->values();
        results.insert(results.end(), values.begin(), values.end());
      }
    }
    return results;
  };
  REQUIRE(same_bits_for_any_thread_count([&] { return run({kSizes, kSizes + std::size(kSizes)}); }));
  const auto alone = run({513}), among = run({513, 17, 6});
  REQUIRE(same_bits({alone.end() - 3 * 513, alone.end()}, {among.begin() + 18, among.begin() + 18 + 3 * 513}));
}
