#include "etc_core/ops/elementwise.h"

#include <cmath>

#include "etc_core/ops/register.h"
#include "tests/reference/elementwise.h"
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

TEST_CASE("sums, scaled sums and scaling equal the formulas in double, also in place", "[core][ops]") {
  ops::register_cpu_ops();
  for (const std::int64_t size : {0, 1, 2, 6, 10, 16383, 16384, 16385, 40001}) {
    for (const float s : {-0.7f, 0.0f, 3e4f}) {
      CAPTURE(size, s);
      const auto a = mixed_floats(size, 1), b = mixed_floats(size, 2);
      const Reals sum = reference_axpy(1, to_double(b), to_double(a));
      const Reals scaled_sum = reference_axpy(s, to_double(b), to_double(a));
      // One rounding of the sum, and one of the product, which is at most the sum of the terms.
      const Reals sum_tolerance = reference_scale(0x1p-24, reference_axpy(1, magnitudes(b), magnitudes(a)));
      const Reals scaled_tolerance =
          reference_scale(0x1p-23, reference_axpy(std::fabs(s), magnitudes(b), magnitudes(a)));
      Guarded apart(size, 99.0f), over_a(a), over_b(b), added(a), scaled(a);
      ops::add(Device::cpu, a.data(), b.data(), apart.data(), size);
      ops::add(Device::cpu, over_a.data(), b.data(), over_a.data(), size);
      ops::add(Device::cpu, a.data(), over_b.data(), over_b.data(), size);
      ops::axpy(Device::cpu, s, b.data(), added.data(), size);
      ops::scale(Device::cpu, s, scaled.data(), size);
      for (const Guarded* y : {&apart, &over_a, &over_b}) REQUIRE(near_each("a + b", y->values(), sum, sum_tolerance));
      REQUIRE(near_each("a + s*b", added.values(), scaled_sum, scaled_tolerance));
      REQUIRE(near_all("s*a", scaled.values(), reference_scale(s, to_double(a)), 0, 0x1p-24));
      for (const Guarded* y : {&apart, &over_a, &over_b, &added, &scaled}) REQUIRE(y->guards_intact());
    }
  }
}

TEST_CASE("sums, scaled sums and scaling have the same bits for any thread count", "[core][ops]") {
  ops::register_cpu_ops();
  const std::int64_t size = 100003;
  const auto a = mixed_floats(size, 1), b = mixed_floats(size, 2);
  REQUIRE(same_bits_for_any_thread_count([&] {
    std::vector<float> y = a;
    ops::add(Device::cpu, y.data(), b.data(), y.data(), size);
    ops::axpy(Device::cpu, 0.3f, b.data(), y.data(), size);
    ops::scale(Device::cpu, 0.7f, y.data(), size);
    return y;
  }));
}
