#include "etc_core/ops/elementwise.h"

#include <cmath>

#include "etc_core/ops/register.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;

TEST_CASE("sums, scaled sums and scaling are one rounding per operation", "[core][ops]") {
  ops::register_cpu_ops();
  for (const std::int64_t size : {0, 1, 17, 100003}) {
    CAPTURE(size);
    const auto a = random_floats(size, 1), b = random_floats(size, 2);
    const auto check = [&](Guarded& got, auto expected) {
      const auto values = got.values();
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] != expected(i)) return false;
      }
      return got.guards_intact();
    };
    Guarded sum(size), scaled_sum(a), scaled(a);
    ops::add(Device::cpu, a.data(), b.data(), sum.data(), size);
    REQUIRE(check(sum, [&](std::size_t i) { return a[i] + b[i]; }));
    ops::axpy(Device::cpu, 0.3f, b.data(), scaled_sum.data(), size);
    REQUIRE(check(scaled_sum, [&](std::size_t i) {
      const volatile float product = 0.3f * b[i];
      return a[i] + product;
    }));
    ops::scale(Device::cpu, 0.3f, scaled.data(), size);
    REQUIRE(check(scaled, [&](std::size_t i) { return a[i] * 0.3f; }));
  }
}

TEST_CASE("the sum of squares is exact to double rounding and the same for any thread count", "[core][ops]") {
  ops::register_cpu_ops();
  for (const std::int64_t size : {0, 1, 9, 16384, 100003}) {
    const auto x = random_floats(size, 1, 1e15f);  // squares overflow fp32
    double expected = 0;
    for (const float v : x) expected += static_cast<double>(v) * v;
    REQUIRE(ops::sum_of_squares(Device::cpu, x.data(), size) == Approx(expected).epsilon(1e-13));
    REQUIRE(same_bits_for_any_thread_count([&] {
      const double sum = ops::sum_of_squares(Device::cpu, x.data(), size);
      const float high = static_cast<float>(sum);
      return std::vector<float>{high, static_cast<float>(sum - static_cast<double>(high))};
    }));
  }
  const std::vector<float> bad = {1, std::nanf(""), 2};
  REQUIRE(std::isnan(ops::sum_of_squares(Device::cpu, bad.data(), 3)));
  const std::vector<float> infinite = {1, INFINITY, 2};
  REQUIRE(ops::sum_of_squares(Device::cpu, infinite.data(), 3) == INFINITY);
}
