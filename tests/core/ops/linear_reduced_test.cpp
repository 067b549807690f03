// Dense layers with bf16 and int8 operands.
#include <cmath>
#include <limits>

#include "etc_core/base/cpu_features.h"
#include "etc_core/ops/cpu/quantize.h"
#include "etc_core/ops/fastest_compute.h"
#include "etc_core/ops/linear.h"
#include "etc_core/ops/register.h"
#include "tests/core/ops/linear_support.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;
using ops::Activation;
using ops::WeightLayout;

namespace {

const Sizes kReducedSizes[] = {{1, 1, 1}, {63, 7, 5}, {64, 32, 192}, {65, 24, 193}, {200, 100, 400}, {3, 768, 64}};

std::vector<float> forward(ComputeType compute, const Sizes& s, const std::vector<float>& x,
                           const std::vector<float>& w, const std::vector<float>& b,
                           Activation activation = Activation::linear, WeightLayout layout = WeightLayout::in_out) {
  const auto packed = ops::pack_weights(Device::cpu, {w.data(), s.in, s.out, layout}, compute);
  Guarded y(s.rows * s.out);
  auto a = layer_of(s, x.data(), nullptr, y.data());
  a.packed = &packed;
  a.bias = b.data();
  a.activation = activation;
  ops::linear(Device::cpu, a);
  REQUIRE(y.guards_intact());
  return y.values();
}

bool offered(ComputeType compute) {
  if (cpu_offers(compute)) return true;
  WARN("skipped: this processor has no " << compute_type_name(compute) << " products");
  return false;
}

// x = scale·q with integer q of at most 127 in magnitude, as the layer's documented rounding.
struct Quantized {
  std::vector<double> q;
  double scale;
  Quantized(const float* x, std::int64_t size, std::int64_t step) {
    float most = 0;
    for (std::int64_t i = 0; i < size; ++i) most = std::max(most, std::abs(x[i * step]));
    const float s = most > 0 ? most / 127.0f : 1.0f;
    for (std::int64_t i = 0; i < size; ++i) q.push_back(std::nearbyint(x[i * step] / s));
    scale = s;
  }
};

}  // namespace

TEST_CASE("a bf16 dense layer is the product of rounded operands", "[reduced]") {
  ops::register_cpu_ops();
  if (!offered(ComputeType::bf16)) return;
  for (const Sizes& s : kReducedSizes) {
    const auto x = random_floats(s.rows * s.in, 1), w = random_floats(s.in * s.out, 2), b = random_floats(s.out, 3);
    std::vector<double> expected;
    for (std::int64_t i = 0; i < s.rows; ++i) {
      for (std::int64_t j = 0; j < s.out; ++j) {
        double sum = b[static_cast<std::size_t>(j)];
        for (std::int64_t k = 0; k < s.in; ++k) {
          sum += static_cast<double>(bf16(x[static_cast<std::size_t>(i * s.in + k)])) *
                 bf16(w[static_cast<std::size_t>(k * s.out + j)]);
        }
        expected.push_back(sum);
      }
    }
    const double tolerance = 1e-6 * std::sqrt(static_cast<double>(s.in)) + 1e-6;
    CHECK(near_all("bf16", forward(ComputeType::bf16, s, x, w, b), expected, tolerance));
  }
}

TEST_CASE("an int8 dense layer is the product of quantized operands", "[reduced]") {
  ops::register_cpu_ops();
  if (!offered(ComputeType::int8)) return;
  for (const Sizes& s : kReducedSizes) {
    const auto x = random_floats(s.rows * s.in, 1), w = random_floats(s.in * s.out, 2), b = random_floats(s.out, 3);
    std::vector<Quantized> columns;
    for (std::int64_t j = 0; j < s.out; ++j) columns.emplace_back(w.data() + j, s.in, s.out);
    std::vector<double> expected, exact;
    for (std::int64_t i = 0; i < s.rows; ++i) {
      const Quantized row(x.data() + i * s.in, s.in, 1);
      for (std::int64_t j = 0; j < s.out; ++j) {
        const Quantized& column = columns[static_cast<std::size_t>(j)];
        double sum = 0, product = b[static_cast<std::size_t>(j)];
        for (std::int64_t k = 0; k < s.in; ++k) {
          sum += row.q[static_cast<std::size_t>(k)] * column.q[static_cast<std::size_t>(k)];
          product += static_cast<double>(x[static_cast<std::size_t>(i * s.in + k)]) *
                     w[static_cast<std::size_t>(k * s.out + j)];
        }
        expected.push_back(sum * row.scale * column.scale + b[static_cast<std::size_t>(j)]);
        exact.push_back(product);
      }
    }
    const auto got = forward(ComputeType::int8, s, x, w, b);
    // If x / scale is close to a half, the layer may round it the other way: one step of one operand.
    CHECK(near_all("int8 against whole numbers", got, expected, 2.0 / 127 + 1e-5));
    // Operands are off by at most half a step of 1/127, independently of each other: sqrt(in) such errors.
    CHECK(near_all("int8 against the exact product", got, exact, 6.0 / 127 * std::sqrt(static_cast<double>(s.in))));
  }
}

TEST_CASE("reduced dense layers do not know a row's position or neighbours, nor the number of threads", "[reduced]") {
  ops::register_cpu_ops();
  for (const ComputeType compute : {ComputeType::bf16, ComputeType::int8}) {
    if (!offered(compute)) continue;
    const Sizes many{1000, 48, 200}, one{1, 48, 200};
    const auto x = random_floats(many.rows * many.in, 1), w = random_floats(many.in * many.out, 2),
               b = random_floats(many.out, 3);
    const auto all = forward(compute, many, x, w, b, Activation::gelu);
    for (const std::int64_t row : {0, 1, 63, 64, 500, 999}) {
      const std::vector<float> x_row(x.begin() + row * many.in, x.begin() + (row + 1) * many.in);
      const std::vector<float> y_row(all.begin() + row * many.out, all.begin() + (row + 1) * many.out);
      CHECK(same_bits(forward(compute, one, x_row, w, b, Activation::gelu), y_row));
    }
    CHECK(same_bits_for_any_thread_count([&] { return forward(compute, many, x, w, b, Activation::gelu); }));
  }
}

TEST_CASE("reduced dense layers take weights in either layout", "[reduced]") {
  ops::register_cpu_ops();
  for (const ComputeType compute : {ComputeType::bf16, ComputeType::int8}) {
    if (!offered(compute)) continue;
    const Sizes s{10, 20, 30};
    const auto x = random_floats(s.rows * s.in, 1), w = random_floats(s.in * s.out, 2), b = random_floats(s.out, 3);
    std::vector<float> turned(w.size());
    for (std::int64_t i = 0; i < s.in; ++i) {
      for (std::int64_t j = 0; j < s.out; ++j) {
        turned[static_cast<std::size_t>(j * s.in + i)] = w[static_cast<std::size_t>(i * s.out + j)];
      }
    }
    CHECK(same_bits(forward(compute, s, x, w, b),
                    forward(compute, s, x, turned, b, Activation::linear, WeightLayout::out_in)));
  }
}

TEST_CASE("the fastest number type is one this processor offers, never int8, and stays the same", "[reduced]") {
  ops::register_cpu_ops();
  const ComputeType fastest = ops::fastest_compute(Device::cpu);
  CHECK(cpu_offers(fastest));
  CHECK(fastest != ComputeType::int8);
  CHECK(ops::fastest_compute(Device::cpu) == fastest);
}

TEST_CASE("reduced dense layers keep rows of zeros and pass on numbers that are none", "[reduced]") {
  ops::register_cpu_ops();
  for (const ComputeType compute : {ComputeType::bf16, ComputeType::int8}) {
    if (!offered(compute)) continue;
    const Sizes s{3, 16, 8};
    std::vector<float> x(static_cast<std::size_t>(s.rows * s.in), 0.0f);
    x[16] = std::numeric_limits<float>::quiet_NaN();
    x[32] = std::numeric_limits<float>::infinity();
    const auto w = random_floats(s.in * s.out, 2);
    const std::vector<float> b(static_cast<std::size_t>(s.out), 0.5f);
    const auto y = forward(compute, s, x, w, b);
    for (std::int64_t j = 0; j < s.out; ++j) {
      CHECK(y[static_cast<std::size_t>(j)] == 0.5f);
      CHECK(std::isnan(y[static_cast<std::size_t>(s.out + j)]));
      CHECK(!std::isfinite(y[static_cast<std::size_t>(2 * s.out + j)]));
    }
  }
}

TEST_CASE("a row with a number that is not finite has no scale, wherever the number stands", "[reduced]") {
  constexpr std::int64_t kSize = 139;  // some whole blocks of any instruction set, and a remainder
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    for (std::int64_t at = 0; at < kSize; ++at) {
      CAPTURE(bad, at);
      auto row = random_floats(kSize, 1);
      row[static_cast<std::size_t>(at)] = bad;
      std::vector<std::uint8_t> bytes(kSize);
      CHECK(std::isnan(ops::cpu::quantize_row(row.data(), kSize, bytes.data())));
      CHECK(bytes == std::vector<std::uint8_t>(kSize, 128));
    }
  }
}
