#include "etc_core/ops/scaled_sum.h"

#include "etc_core/ops/register.h"
#include "tests/reference/scaled_sum.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;

namespace {

constexpr double kRounding = 0x1p-24;  // relative rounding error of one fp32 operation

struct SumGradients {
  std::vector<float> dbranch, dalpha;
};

// dalpha is added to `before`.
SumGradients gradients(const std::vector<float>& dy, const std::vector<float>& branch, float alpha, float before) {
  Guarded dbranch(static_cast<std::int64_t>(dy.size()), 99.0f), dalpha(std::vector<float>{before});
  ops::scaled_sum_backward(Device::cpu,
                           {std::ssize(dy), dy.data(), branch.data(), &alpha, dbranch.data(), dalpha.data()});
  REQUIRE(dbranch.guards_intact());
  REQUIRE(dalpha.guards_intact());
  return {dbranch.values(), dalpha.values()};
}

}  // namespace

TEST_CASE("scaled sums equal the formula in double, also in place", "[core][ops]") {
  ops::register_cpu_ops();
  for (const std::int64_t size : {0, 1, 2, 17, 16384, 16385, 40001}) {
    for (const float alpha : {0.0f, 1.0f, -0.7f, 3e4f}) {
      CAPTURE(size, alpha);
      const auto x = mixed_floats(size, 1), branch = mixed_floats(size, 2);
      Guarded apart(size, 99.0f), over_x(x), over_branch(branch);
      ops::scaled_sum(Device::cpu, {size, x.data(), branch.data(), &alpha, apart.data()});
      ops::scaled_sum(Device::cpu, {size, over_x.data(), branch.data(), &alpha, over_x.data()});
      ops::scaled_sum(Device::cpu, {size, x.data(), over_branch.data(), &alpha, over_branch.data()});
      const Reals expected = reference_scaled_sum(to_double(x), to_double(branch), alpha);
      // Two roundings, at most relative to the terms.
      Reals tolerances = reference_scaled_sum(magnitudes(x), magnitudes(branch), std::abs(alpha));
      for (double& tolerance : tolerances) tolerance *= 2 * kRounding;
      for (const Guarded* y : {&apart, &over_x, &over_branch}) {
        REQUIRE(near_each("x + alpha*branch", y->values(), expected, tolerances));
        REQUIRE(y->guards_intact());
      }
      if (alpha == 0) REQUIRE(same_bits(apart.values(), x));
    }
  }
}

TEST_CASE("the gradients of a scaled sum are those of central differences, and dalpha is added", "[core][ops]") {
  ops::register_cpu_ops();
  for (const std::int64_t size : {1, 6, 130}) {
    for (const float alpha : {0.0f, -0.7f}) {
      CAPTURE(size, alpha);
      const auto x = random_floats(size, 1), branch = random_floats(size, 2), dy = random_floats(size, 3);
      const SumGradients got = gradients(dy, branch, alpha, 0.25f);
      const auto of_branch = [&](const Reals& b) {
        return inner_product(reference_scaled_sum(to_double(x), b, alpha), to_double(dy));
      };
      const auto of_alpha = [&](const Reals& a) {
        return inner_product(reference_scaled_sum(to_double(x), to_double(branch), a[0]), to_double(dy));
      };
      REQUIRE(near_all("dbranch", got.dbranch, central_differences(of_branch, to_double(branch)), 1e-8, kRounding));
      const double slope = central_differences(of_alpha, {alpha})[0];
      REQUIRE(near_all("dalpha", got.dalpha, {0.25 + slope}, 1e-7, 2 * kRounding));
      if (alpha == 0) REQUIRE(got.dalpha[0] != 0.25f);  // ReZero begins to learn from 0
    }
  }
}

TEST_CASE("each gradient of a scaled sum may be left out, and dbranch may take dy's place", "[core][ops]") {
  ops::register_cpu_ops();
  const std::int64_t size = 40001;
  const auto branch = random_floats(size, 2), dy = random_floats(size, 3);
  const float alpha = 0.3f;
  const SumGradients both = gradients(dy, branch, alpha, 0);
  Guarded over_dy(dy), alone(std::vector<float>{0.0f});
  ops::scaled_sum_backward(Device::cpu, {size, dy.data(), branch.data(), &alpha, nullptr, alone.data()});
  REQUIRE(same_bits(alone.values(), both.dalpha));
  Guarded dalpha(std::vector<float>{0.0f});
  ops::scaled_sum_backward(Device::cpu, {size, over_dy.data(), branch.data(), &alpha, over_dy.data(), dalpha.data()});
  REQUIRE(same_bits(over_dy.values(), both.dbranch));
  REQUIRE(same_bits(dalpha.values(), both.dalpha));
}

TEST_CASE("scaled sums have the same bits for any thread count", "[core][ops]") {
  ops::register_cpu_ops();
  const std::int64_t size = 100003;
  const auto x = mixed_floats(size, 1), branch = mixed_floats(size, 2), dy = random_floats(size, 3);
  const float alpha = 0.3f;
  REQUIRE(same_bits_for_any_thread_count([&] {
    std::vector<float> y = x;
    ops::scaled_sum(Device::cpu, {size, y.data(), branch.data(), &alpha, y.data()});
    const SumGradients got = gradients(dy, branch, alpha, 1);
    y.insert(y.end(), got.dbranch.begin(), got.dbranch.end());
    y.push_back(got.dalpha[0]);
    return y;
  }));
}

TEST_CASE("sums with a number for each column equal the formula, and their gradients are those sums", "[core][ops]") {
  ops::register_cpu_ops();
  for (const auto& [rows, cols] : {std::pair<std::int64_t, std::int64_t>(1, 3), {7, 2}, {300, 130}}) {
    CAPTURE(rows, cols);
    const std::int64_t size = rows * cols;
    const auto x = mixed_floats(size, 1), branch = random_floats(size, 2), dy = random_floats(size, 3);
    const auto alpha = random_floats(cols, 4);
    const auto run = [&] {
      Guarded y(size, 99.0f), dbranch(dy), dalpha(std::vector<float>(static_cast<std::size_t>(cols), 0.25f));
      ops::scaled_sum(Device::cpu, {size, x.data(), branch.data(), alpha.data(), y.data(), cols});
      // In place, over dy.
      ops::scaled_sum_backward(
          Device::cpu, {size, dbranch.data(), branch.data(), alpha.data(), dbranch.data(), dalpha.data(), cols});
      for (const Guarded* one : {&y, &dbranch, &dalpha}) REQUIRE(one->guards_intact());
      std::vector<float> all = y.values();
      for (const Guarded* one : {&dbranch, &dalpha}) {
        const auto more = one->values();
        all.insert(all.end(), more.begin(), more.end());
      }
      return all;
    };
    const std::vector<float> got = run();
    Reals expected, tolerances, sums(static_cast<std::size_t>(cols), 0.25), magnitude(sums);
    for (std::int64_t i = 0; i < size; ++i) {
      const auto at = static_cast<std::size_t>(i), column = static_cast<std::size_t>(i % cols);
      const double term = static_cast<double>(alpha[column]) * branch[at];
      expected.push_back(x[at] + term);
      tolerances.push_back(2 * kRounding * (std::abs(x[at]) + std::abs(term)));
      sums[column] += static_cast<double>(dy[at]) * branch[at];
    }
    for (std::int64_t i = 0; i < size; ++i) {
      expected.push_back(static_cast<double>(alpha[static_cast<std::size_t>(i % cols)]) *
                         dy[static_cast<std::size_t>(i)]);
      tolerances.push_back(2 * kRounding * std::abs(expected.back()));
    }
    for (const double sum : sums) {
      expected.push_back(sum);
      tolerances.push_back(2 * kRounding * std::abs(sum) + 1e-12 * static_cast<double>(rows));
    }
    REQUIRE(near_each("columns", got, expected, tolerances));
    REQUIRE(same_bits_for_any_thread_count(run));
  }
  const float numbers[4] = {};
  float results[4] = {};
  REQUIRE_THROWS_WITH(ops::scaled_sum(Device::cpu, {4, numbers, numbers, numbers, results, 3}),
                      "scaled_sum: alphas: expected 1, or the columns of a matrix of 4 numbers, got 3");
}

TEST_CASE("scaled sums say what is wrong with their arguments", "[core][ops]") {
  ops::register_cpu_ops();
  const float numbers[2] = {};
  float results[2] = {};
  REQUIRE_THROWS_WITH(ops::scaled_sum(Device::cpu, {-1, numbers, numbers, numbers, results}),
                      "scaled_sum: size: expected at least 0, got -1");
  REQUIRE_THROWS_WITH(ops::scaled_sum(Device::cpu, {2, numbers, numbers, nullptr, results}),
                      "scaled_sum: alpha is missing (null)");
  REQUIRE_THROWS_WITH(ops::scaled_sum_backward(Device::cpu, {2, numbers, nullptr, numbers, results, nullptr}),
                      "scaled_sum_backward: branch is missing (null)");
}
