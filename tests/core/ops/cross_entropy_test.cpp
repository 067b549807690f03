#include "etc_core/ops/cross_entropy.h"

#include <cmath>

#include "etc_core/ops/register.h"
#include "tests/reference/dense.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;

namespace {

struct Run {
  std::vector<double> losses;
  std::vector<float> dlogits;
};

Run run(ops::CrossEntropy a, std::int64_t elements) {
  Run result;
  result.losses.assign(static_cast<std::size_t>(a.groups), -1);
  Guarded dlogits(elements, 5.0f);
  a.losses = result.losses.data();
  a.dlogits = dlogits.data();
  ops::cross_entropy(Device::cpu, a);
  REQUIRE(dlogits.guards_intact());
  result.dlogits = dlogits.values();
  return result;
}

}  // namespace

TEST_CASE("cross-entropy gives the worked numbers of the specification", "[core][ops]") {
  ops::register_cpu_ops();
  const std::vector<float> logits = {2, 1, 0, 2, 1, 0, 2, 1, 0, -1, 0.5f};
  const std::vector<std::int64_t> offsets = {0, 3, 6, 11};
  const std::vector<std::int32_t> targets = {0, 2, 0};
  ops::CrossEntropy a{.groups = 2, .offsets = offsets.data(), .logits = logits.data(), .target_index = targets.data()};
  auto result = run(a, 6);
  REQUIRE(result.losses[0] == Approx(0.4076060).margin(1e-7));
  REQUIRE(result.losses[1] == Approx(2.4076060).margin(1e-7));
  a.label_smoothing = 0.1f;
  result = run(a, 6);
  REQUIRE(result.losses[0] == Approx(0.5076060).margin(1e-7));
  // Over five classes, with its gradient.
  a.groups = 1;
  a.offsets = offsets.data() + 2;
  a.target_index = targets.data() + 2;
  result = run(a, 11);
  REQUIRE(result.losses[0] == Approx(0.724438).margin(1e-6));
  const std::vector<double> gradient = {-0.356979, 0.187124, 0.056197, 0.008031, 0.105627};
  REQUIRE(near_all("dz", {result.dlogits.begin() + 6, result.dlogits.end()}, gradient, 2e-6));
}

TEST_CASE("cross-entropy over ragged groups equals the formula and central differences", "[core][ops]") {
  ops::register_cpu_ops();
  const std::vector<std::int64_t> offsets = {0, 1, 6, 6, 40};
  const auto logits = random_floats(40, 1, 5.0f);
  auto counted = std::vector<std::uint8_t>(40, 1);
  for (const std::size_t i : {2u, 7u, 8u, 30u}) counted[i] = 0;
  auto target = random_floats(40, 2);
  for (float& t : target) t = std::fabs(t);
  ops::CrossEntropy a{.groups = 4,
                      .offsets = offsets.data(),
                      .logits = logits.data(),
                      .counted = counted.data(),
                      .target = target.data(),
                      .scale = 0.25};
  const auto got = run(a, 40);
  std::vector<double> expected(40, 0.0);
  for (std::size_t k = 0; k < 4; ++k) {
    Reals z, t;
    std::vector<std::size_t> where;
    for (auto i = static_cast<std::size_t>(offsets[k]); i < static_cast<std::size_t>(offsets[k + 1]); ++i) {
      if (!counted[i]) continue;
      z.push_back(logits[i]);
      t.push_back(target[i]);
      where.push_back(i);
    }
    if (z.empty()) {
      REQUIRE(got.losses[k] == 0);
      continue;
    }
    REQUIRE(got.losses[k] == Approx(reference_cross_entropy(z, t)).epsilon(1e-12));
    const Reals slopes = central_differences([&](const Reals& v) { return reference_cross_entropy(v, t); }, z);
    for (std::size_t i = 0; i < where.size(); ++i) expected[where[i]] = 0.25 * slopes[i];
  }
  REQUIRE(near_all("dz", got.dlogits, expected, 1e-7, 1e-6));
}

TEST_CASE("cross-entropy reads a column of a wider tensor and may replace it by its gradient", "[core][ops]") {
  ops::register_cpu_ops();
  const auto wide = random_floats(3 * 20, 1, 3.0f);  // [20, 3]
  std::vector<float> column(20);
  for (std::size_t i = 0; i < 20; ++i) column[i] = wide[3 * i + 1];
  const std::vector<std::int64_t> offsets = {0, 12, 20};
  const std::vector<std::int32_t> targets = {3, -1};
  ops::CrossEntropy a{.groups = 2, .offsets = offsets.data(), .logits = column.data(), .target_index = targets.data()};
  const auto expected = run(a, 20);
  REQUIRE(expected.losses[1] == 0);
  REQUIRE(std::all_of(expected.dlogits.begin() + 12, expected.dlogits.end(), [](float v) { return v == 0; }));
  auto inside = wide;
  std::vector<double> losses(2);
  a.logits = inside.data() + 1;
  a.stride = 3;
  a.dlogits = inside.data() + 1;
  a.losses = losses.data();
  ops::cross_entropy(Device::cpu, a);
  REQUIRE(losses == expected.losses);
  for (std::size_t i = 0; i < 20; ++i) {
    REQUIRE(inside[3 * i + 1] == expected.dlogits[i]);
    REQUIRE(inside[3 * i] == wide[3 * i]);
    REQUIRE(inside[3 * i + 2] == wide[3 * i + 2]);
  }
}

TEST_CASE("cross-entropy stands large logits, keeps nan and has the same bits for any thread count", "[core][ops]") {
  ops::register_cpu_ops();
  const std::vector<std::int64_t> offsets = {0, 3, 5};
  const std::vector<std::int32_t> targets = {1, 0};
  const std::vector<float> logits = {3e38f, -3e38f, 0, std::nanf(""), 1};
  ops::CrossEntropy a{.groups = 2, .offsets = offsets.data(), .logits = logits.data(), .target_index = targets.data()};
  const auto got = run(a, 5);
  REQUIRE(got.losses[0] == Approx(6e38));
  REQUIRE(std::isnan(got.losses[1]));
  REQUIRE(got.dlogits[1] == -1);

  std::vector<std::int64_t> many = {0};
  std::vector<std::int32_t> many_targets;
  for (std::int64_t k = 0; k < 3000; ++k) {
    many.push_back(many.back() + 1 + k % 9);
    many_targets.push_back(static_cast<std::int32_t>(k % (1 + k % 9)));
  }
  const auto z = random_floats(many.back(), 3);
  a.groups = 3000;
  a.offsets = many.data();
  a.logits = z.data();
  a.target_index = many_targets.data();
  REQUIRE(same_bits_for_any_thread_count([&] {
    auto result = run(a, many.back());
    for (const double loss : result.losses) result.dlogits.push_back(static_cast<float>(loss));
    return result.dlogits;
  }));
}
