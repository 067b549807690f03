#include "etc_core/ops/activation.h"

#include <cmath>

#include "etc_core/ops/register.h"
#include "tests/reference/dense.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;
using ops::Activation;

namespace {

constexpr Activation kAll[] = {Activation::linear, Activation::relu, Activation::tanh, Activation::gelu,
                               Activation::gelu_erf};

// −30 … 30 in small steps, powers of ten on both sides of zero, zero.
std::vector<float> many_arguments() {
  std::vector<float> x = {0.0f, -0.0f};
  for (int i = -30000; i <= 30000; ++i) x.push_back(static_cast<float>(i) * 1e-3f);
  for (float size = 1e-30f; size < 1e8f; size *= 3.7f) {
    x.push_back(size);
    x.push_back(-size);
  }
  return x;
}

}  // namespace

TEST_CASE("activations are within a few ulp of the exact value", "[core][ops]") {
  ops::register_cpu_ops();
  const auto x = many_arguments();
  for (const Activation activation : kAll) {
    const std::string name = ops::activation_name(activation);
    CAPTURE(name);
    Guarded y(static_cast<std::int64_t>(x.size()));
    ops::activation_forward(Device::cpu, activation, x.data(), y.data(), y.size());
    std::vector<double> expected;
    for (const float v : x) expected.push_back(reference_activation(name, v));
    if (name == "gelu") {
      // x·(1 + tanh) suffers from cancellation in double, too, so the exact value for negative x is computed as
      // x·sigmoid.
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double v = x[i];
        const double u = std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v);
        expected[i] = v / (1 + std::exp(-2 * u));
      }
    }
    // 4 ulp, and for gelu the rounding of the exponent 2u (|2u| < 33 where the result is above 1e-13) once more; that of
    // gelu_erf is as large.
    const bool gelu = name.starts_with("gelu");
    REQUIRE(near_all(name, y.values(), expected, gelu ? 1e-13 : 1e-37, gelu ? 33 * 1.2e-7 : 5e-7));
    REQUIRE(y.guards_intact());
  }
}

TEST_CASE("activation gradients equal the formula and central differences", "[core][ops]") {
  ops::register_cpu_ops();
  const auto x = many_arguments();
  const auto dy = random_floats(static_cast<std::int64_t>(x.size()), 5);
  for (const Activation activation : kAll) {
    const std::string name = ops::activation_name(activation);
    CAPTURE(name);
    Guarded dx(static_cast<std::int64_t>(x.size()));
    ops::activation_backward(Device::cpu, activation, x.data(), dy.data(), dx.data(), dx.size());
    std::vector<double> expected;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double slope = reference_activation_gradient(name, x[i]);
      expected.push_back(slope * static_cast<double>(dy[i]));
      if (name == "relu" && x[i] == 0) continue;
      if (std::fabs(x[i]) > 20 || i % 97 != 0) continue;
      const double step = 1e-5;
      const double difference =
          (reference_activation(name, x[i] + step) - reference_activation(name, x[i] - step)) / (2 * step);
      if (name != "relu" || std::fabs(x[i]) > step) REQUIRE(slope == Approx(difference).margin(1e-8));
    }
    REQUIRE(near_all(name, dx.values(), expected, 1e-6));
    REQUIRE(dx.guards_intact());
    // In place.
    std::vector<float> same = dy;
    ops::activation_backward(Device::cpu, activation, x.data(), same.data(), same.data(), dx.size());
    REQUIRE(same_bits(same, dx.values()));
  }
}

TEST_CASE("an activation keeps nan and lets infinity through", "[core][ops]") {
  ops::register_cpu_ops();
  const std::vector<float> x = {std::nanf(""), INFINITY, 3e38f, -3e38f};
  for (const Activation activation : kAll) {
    std::vector<float> y(4), dx(4);
    const std::vector<float> dy = {std::nanf(""), 1, 1, 1};
    ops::activation_forward(Device::cpu, activation, x.data(), y.data(), 4);
    REQUIRE(std::isnan(y[0]));
    REQUIRE(y[1] == (activation == Activation::tanh ? 1.0f : INFINITY));
    REQUIRE(y[2] == (activation == Activation::tanh ? 1.0f : 3e38f));
    ops::activation_backward(Device::cpu, activation, x.data(), dy.data(), dx.data(), 4);
    if (activation != Activation::relu) REQUIRE(std::isnan(dx[0]));
    REQUIRE(dx[2] == (activation == Activation::tanh ? 0.0f : 1.0f));
    REQUIRE(dx[3] == (activation == Activation::linear ? 1.0f : 0.0f));
  }
}

TEST_CASE("an element's activation does not depend on where it stands", "[core][ops]") {
  ops::register_cpu_ops();
  for (const Activation activation : {Activation::tanh, Activation::gelu, Activation::gelu_erf}) {
    for (const std::int64_t size : {1, 7, 15, 16, 17, 33}) {
      std::vector<float> x(static_cast<std::size_t>(size), -0.7321f), y(x.size()), dx(x.size());
      const std::vector<float> dy(x.size(), 0.3f);
      ops::activation_forward(Device::cpu, activation, x.data(), y.data(), size);
      ops::activation_backward(Device::cpu, activation, x.data(), dy.data(), dx.data(), size);
      REQUIRE(std::all_of(y.begin(), y.end(), [&](float v) { return v == y[0]; }));
      REQUIRE(std::all_of(dx.begin(), dx.end(), [&](float v) { return v == dx[0]; }));
    }
  }
}

TEST_CASE("activations are named as in the configuration, in any case of letters", "[core][ops]") {
  REQUIRE(ops::activation_from_name("GELU") == Activation::gelu);
  REQUIRE(ops::activation_from_name("gelu_erf") == Activation::gelu_erf);
  REQUIRE(ops::activation_from_name("relu") == Activation::relu);
  REQUIRE(ops::activation_from_name("Tanh") == Activation::tanh);
  REQUIRE(ops::activation_from_name("linear") == Activation::linear);
  REQUIRE(ops::activation_from_name("") == Activation::linear);
  REQUIRE_THROWS_WITH(ops::activation_from_name("swish"),
                      "activation: expected gelu, gelu_erf, relu, tanh or linear, got \"swish\"");
}
