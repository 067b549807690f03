// Dense layers in bf16 training: unpacked weights, and gradients.
#include <algorithm>

#include "etc_core/base/cpu_features.h"
#include "etc_core/ops/linear.h"
#include "etc_core/ops/register.h"
#include "tests/core/ops/linear_support.h"
#include "tests/reference/dense.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;
using ops::Activation;
using ops::WeightLayout;

namespace {

// Less than a block of 512 tokens, several blocks, and more than are rounded at a time.
const Sizes kBf16Sizes[] = {{1, 1, 1}, {63, 7, 5}, {65, 24, 193}, {200, 100, 400}, {1100, 70, 33}, {600, 2, 8300}};

bool offered() {
  if (cpu_offers(ComputeType::bf16)) return true;
  WARN("skipped: this processor has no bf16 products");
  return false;
}

Reals rounded(std::vector<float> values) {
  for (float& x : values) x = bf16(x);
  return to_double(values);
}

ops::LinearForward forward_of(const Sizes& s, const float* x, const float* w, float* y) {
  return {.rows = s.rows,
          .in = s.in,
          .out = s.out,
          .x = x,
          .x_stride = s.in,
          .weight = w,
          .compute = ComputeType::bf16,
          .y = y,
          .y_stride = s.out};
}

// dx, dW and db in one array; the first two start with initial values.
struct Gradients {
  Gradients(const Sizes& s, float initial = 0)
      : sizes(s), dx(s.rows, s.in, 3, 5), dw(s.in * s.out, initial), db(s.out) {}
  std::vector<float> all() {
    auto values = dx.used();
    for (const auto& more : {dw.values(), db.values()}) values.insert(values.end(), more.begin(), more.end());
    return values;
  }
  bool untouched_outside() { return dx.untouched_outside() && dw.guards_intact() && db.guards_intact(); }
  Sizes sizes;
  Strided dx;
  Guarded dw, db;
};

ops::LinearBackward backward_of(const Sizes& s, Strided& x, Strided& dz, const float* w, Gradients& to) {
  return {.rows = s.rows,
          .in = s.in,
          .out = s.out,
          .dz = dz.all.data(),
          .dz_stride = dz.stride,
          .x = x.all.data(),
          .x_stride = x.stride,
          .weight = w,
          .compute = ComputeType::bf16,
          .dx = to.dx.all.data(),
          .dx_stride = to.dx.stride,
          .dweight = to.dw.data(),
          .dbias = to.db.data()};
}

}  // namespace

TEST_CASE("a bf16 layer has the same bits with packed and with plain weights of either layout", "[reduced]") {
  ops::register_cpu_ops();
  if (!offered()) return;
  for (const Sizes& s : kBf16Sizes) {
    CAPTURE(s.rows, s.in, s.out);
    const auto x = random_floats(s.rows * s.in, 1), w = random_floats(s.in * s.out, 2), b = random_floats(s.out, 3);
    const auto turned = flipped(w, s.in, s.out);
    const auto packed = ops::pack_weights(Device::cpu, {w.data(), s.in, s.out}, ComputeType::bf16);
    const auto run = [&](const float* weight, WeightLayout layout) {
      Guarded y(s.rows * s.out), z(s.rows * s.out);
      ops::LinearForward a = forward_of(s, x.data(), weight, y.data());
      a.layout = layout;
      a.packed = weight == nullptr ? &packed : nullptr;
      a.bias = b.data();
      a.activation = Activation::gelu;
      a.pre_activation = z.data();
      ops::linear(Device::cpu, a);
      CHECK(y.guards_intact());
      CHECK(z.guards_intact());
      auto all = y.values();
      for (const float value : z.values()) all.push_back(value);
      return all;
    };
    const auto expected = run(nullptr, WeightLayout::in_out);
    CHECK(same_bits(run(w.data(), WeightLayout::in_out), expected));
    CHECK(same_bits(run(turned.data(), WeightLayout::out_in), expected));
  }
}

TEST_CASE("bf16 gradients of a dense layer are the products of rounded operands", "[reduced]") {
  ops::register_cpu_ops();
  if (!offered()) return;
  for (const Sizes& s : kBf16Sizes) {
    for (const auto layout : {WeightLayout::in_out, WeightLayout::out_in}) {
      CAPTURE(s.rows, s.in, s.out, static_cast<int>(layout));
      Strided x(s.rows, s.in, 2, 1), dz(s.rows, s.out, 4, 2);
      const auto w = random_floats(s.in * s.out, 4);
      const Reals x64 = rounded(x.used()), dz64 = rounded(dz.used());
      const Reals w64 = rounded(layout == WeightLayout::in_out ? w : flipped(w, s.out, s.in));
      const Reals dx64 = matrix_product(dz64, transposed(w64, s.in, s.out), s.rows, s.out, s.in);
      Reals dw64 = matrix_product(transposed(x64, s.rows, s.in), dz64, s.in, s.rows, s.out);
      if (layout == WeightLayout::out_in) dw64 = transposed(dw64, s.in, s.out);
      for (double& number : dw64) number += 0.5;  // initial value
      Reals db64(static_cast<std::size_t>(s.out), 0.0);
      const auto exact = dz.used();
      for (std::size_t i = 0; i < exact.size(); ++i) {
        db64[i % static_cast<std::size_t>(s.out)] += static_cast<double>(exact[i]);
      }

      Gradients to(s, 0.5f);
      const auto before = to.dx.used();
      ops::LinearBackward a = backward_of(s, x, dz, w.data(), to);
      a.layout = layout;
      ops::linear_backward(Device::cpu, a);
      CHECK(near_all("dx", to.dx.used(), dx64, product_tolerance(s.out)));
      CHECK(near_all("dW", to.dw.values(), dw64, product_tolerance(s.rows)));
      CHECK(near_all("db", to.db.values(), db64, product_tolerance(s.rows)));
      CHECK(to.untouched_outside());

      // Only the bias gradient, in fp32: the same blocks give the same bits.
      Gradients alone(s);
      ops::LinearBackward of_bias = backward_of(s, x, dz, w.data(), alone);
      of_bias.compute = ComputeType::fp32;
      of_bias.dx = of_bias.dweight = nullptr;
      ops::linear_backward(Device::cpu, of_bias);
      CHECK(same_bits(alone.db.values(), to.db.values()));

      // Only dx, added to initial values.
      Gradients sum(s);
      ops::LinearBackward of_x = backward_of(s, x, dz, w.data(), sum);
      of_x.layout = layout;
      of_x.add_to_dx = true;
      of_x.x = nullptr;
      of_x.dweight = of_x.dbias = nullptr;
      ops::linear_backward(Device::cpu, of_x);
      Reals sum64 = to_double(before);
      for (std::size_t i = 0; i < sum64.size(); ++i) sum64[i] += dx64[i];
      CHECK(near_all("dx +=", sum.dx.used(), sum64, product_tolerance(s.out)));
      CHECK(sum.untouched_outside());
    }
  }
}

TEST_CASE("rows of bf16 layers and of their added dx do not know their position or neighbours", "[reduced]") {
  ops::register_cpu_ops();
  if (!offered()) return;
  for (const std::int64_t in : {1, 7, 100, 768}) {
    for (const std::int64_t out : {1, 24, 193}) {
      CAPTURE(in, out);
      const Sizes many{130, in, out}, one{1, in, out};
      const auto w = random_floats(in * out, 1);
      const auto run = [&](const Sizes& s, const std::vector<float>& x, const std::vector<float>& dx) {
        std::vector<float> y(static_cast<std::size_t>(s.rows * out)), sum = dx;
        ops::linear(Device::cpu, forward_of(s, x.data(), w.data(), y.data()));
        auto a = gradients_of({s.rows, in, out}, y.data(), nullptr);
        a.weight = w.data();
        a.compute = ComputeType::bf16;
        a.dx = sum.data();
        a.add_to_dx = true;
        ops::linear_backward(Device::cpu, a);
        return std::pair(y, sum);
      };
      const auto row = random_floats(in, 2), dx_row = random_floats(in, 3);
      const auto [y_alone, dx_alone] = run(one, row, dx_row);
      auto x = random_floats(many.rows * in, 4, 1e6f), dx = random_floats(many.rows * in, 5);
      std::fill_n(x.begin(), in, std::nanf(""));
      const std::int64_t places[] = {5, 63, 64, 90, 129};
      for (const std::int64_t at : places) {
        std::copy(row.begin(), row.end(), x.begin() + at * in);
        std::copy(dx_row.begin(), dx_row.end(), dx.begin() + at * in);
      }
      const auto [y, sum] = run(many, x, dx);
      for (const std::int64_t at : places) {
        CHECK(std::memcmp(y.data() + at * out, y_alone.data(), y_alone.size() * sizeof(float)) == 0);
        CHECK(std::memcmp(sum.data() + at * in, dx_alone.data(), dx_alone.size() * sizeof(float)) == 0);
      }
    }
  }
}

TEST_CASE("bf16 layers and their gradients have the same bits for 1, 2 and 4 threads", "[reduced]") {
  ops::register_cpu_ops();
  if (!offered()) return;
  for (const Sizes& s : {Sizes{65, 24, 24}, Sizes{1300, 300, 400}}) {
    CAPTURE(s.rows, s.in, s.out);
    Strided x(s.rows, s.in, 0, 1), dz(s.rows, s.out, 0, 2);
    const auto w = random_floats(s.in * s.out, 3);
    CHECK(same_bits_for_any_thread_count([&] {
      std::vector<float> y(static_cast<std::size_t>(s.rows * s.out));
      ops::linear(Device::cpu, forward_of(s, x.all.data(), w.data(), y.data()));
      return y;
    }));
    CHECK(same_bits_for_any_thread_count([&] {
      Gradients to(s);
      ops::linear_backward(Device::cpu, backward_of(s, x, dz, w.data(), to));
      return to.all();
    }));
  }
}

TEST_CASE("bf16 weights too large for the scratch are packed in several groups", "[reduced]") {
  ops::register_cpu_ops();
  if (!offered()) return;
  const Sizes s{2, 4096, 192 * 11 + 5};  // a group holds ten panels of 192 columns
  const auto x = random_floats(s.rows * s.in, 1), w = random_floats(s.in * s.out, 2);
  std::vector<float> y(static_cast<std::size_t>(s.rows * s.out));
  ops::linear(Device::cpu, forward_of(s, x.data(), w.data(), y.data()));
  CHECK(near_all("y", y, matrix_product(rounded(x), rounded(w), s.rows, s.in, s.out), product_tolerance(s.in)));
}

TEST_CASE("a training in int8 is refused", "[reduced]") {
  ops::register_cpu_ops();
  const Sizes s{1, 2, 3};
  Strided x(1, 2, 0, 1), dz(1, 3, 0, 2);
  const auto w = random_floats(6, 3);
  float y[3];
  ops::LinearForward a = forward_of(s, w.data(), w.data(), y);
  a.compute = ComputeType::int8;
  const std::string expected = "compute: expected fp32 or bf16, got int8";
  CHECK_THROWS_WITH(ops::linear(Device::cpu, a), Catch::Matchers::Contains(expected));
  Gradients to(s);
  ops::LinearBackward back = backward_of(s, x, dz, w.data(), to);
  back.compute = ComputeType::int8;
  CHECK_THROWS_WITH(ops::linear_backward(Device::cpu, back), Catch::Matchers::Contains(expected));
}
