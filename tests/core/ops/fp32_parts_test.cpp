// fp32 products with AMX, which are computed from three bf16 parts of each number (word_product.h): exactness beside fp32
// multiply-adds, and the limits of the range of numbers.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "etc_core/ops/cpu/reduced_product.h"
#include "etc_core/ops/linear.h"
#include "etc_core/ops/register.h"
#include "tests/core/ops/linear_support.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/worst.h"

using namespace etc;
using namespace etc::test;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Largest error of a sum of products, relative to the sum of their magnitudes.
struct Errors {
  double product = 0, multiply_adds = 0;  // of linear(); of fp32 multiply-adds in order
};

Errors errors_of(const Sizes& sizes, const std::vector<float>& x, const std::vector<float>& w) {
  std::vector<float> y(static_cast<std::size_t>(sizes.rows * sizes.out));
  ops::linear(Device::cpu, layer_of(sizes, x.data(), w.data(), y.data()));
  Errors worst;
  for (std::int64_t i = 0; i < sizes.rows; ++i) {
    for (std::int64_t j = 0; j < sizes.out; ++j) {
      double sum = 0, magnitudes = 0;
      float in_order = 0;
      for (std::int64_t k = 0; k < sizes.in; ++k) {
        const float a = x[static_cast<std::size_t>(i * sizes.in + k)];
        const float b = w[static_cast<std::size_t>(k * sizes.out + j)];
        sum += static_cast<double>(a) * b;
        magnitudes += std::abs(static_cast<double>(a) * b);
        in_order = std::fma(a, b, in_order);
      }
      keep_worst(worst.product,
                 std::abs(static_cast<double>(y[static_cast<std::size_t>(i * sizes.out + j)]) - sum) / magnitudes);
      keep_worst(worst.multiply_adds, std::abs(static_cast<double>(in_order) - sum) / magnitudes);
    }
  }
  return worst;
}

float product_of(float a, float b) {
  float y = 0;
  ops::linear(Device::cpu, layer_of({1, 1, 1}, &a, &b, &y));
  return y;
}

}  // namespace

TEST_CASE("fp32 products are at least as exact as fp32 multiply-adds in order", "[core][ops][linear]") {
  ops::register_cpu_ops();
  for (const Sizes& sizes : {Sizes{40, 64, 40}, Sizes{33, 768, 50}, Sizes{20, 3072, 33}}) {
    CAPTURE(sizes.in);
    const auto w = random_floats(sizes.in * sizes.out, 2);
    auto x = random_floats(sizes.rows * sizes.in, 1);
    for (const bool of_all_magnitudes : {false, true}) {
      for (std::size_t i = 0; of_all_magnitudes && i < x.size(); ++i) {
        x[i] = std::ldexp(x[i], static_cast<int>(i % 41) - 20);
      }
      const Errors worst = errors_of(sizes, x, w);
      CAPTURE(worst.product, worst.multiply_adds, of_all_magnitudes);
      CHECK(worst.product <= 1.1 * worst.multiply_adds);
    }
  }
}

TEST_CASE("a single fp32 product is exact to its last bit but one, from 2e-31 to 3e38", "[core][ops][linear]") {
  ops::register_cpu_ops();
  const auto a = random_floats(2000, 1), b = random_floats(2000, 2);
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (const int exponent : {-98, -60, 0, 60, 126}) {
      const float x = std::ldexp(a[i], exponent), w = std::ldexp(b[i], -exponent / 2);
      CAPTURE(x, w);
      const double exact = static_cast<double>(x) * w;
      if (std::abs(x) < 0x1p-102f || std::abs(w) < 0x1p-102f || std::abs(exact) < 0x1p-100) continue;
      CHECK(std::abs(static_cast<double>(product_of(x, w)) - exact) <= 0x1p-22 * std::abs(exact));
    }
  }
  CHECK(product_of(3.38e38f, 1) == 3.38e38f);
  CHECK(product_of(0, 5) == 0);
}

TEST_CASE("fp32 products with numbers that are not finite are not finite", "[core][ops][linear]") {
  ops::register_cpu_ops();
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity}) {
    CHECK(!std::isfinite(product_of(bad, 2)));
    CHECK(!std::isfinite(product_of(2, bad)));
    // In one row among others, and nowhere else.
    auto x = random_floats(3 * 40, 1), w = random_floats(40 * 7, 2);
    x[40 + 17] = bad;
    std::vector<float> y(21);
    ops::linear(Device::cpu, layer_of({3, 40, 7}, x.data(), w.data(), y.data()));
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(std::isfinite(y[i]) == (i / 7 != 1));
  }
}
