#include "etc_core/ops/linear.h"

#include <cstring>
#include <limits>

#include "etc_core/base/cpu_features.h"
#include "etc_core/base/parallel.h"
#include "etc_core/ops/activation.h"
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

const Sizes kSizes[] = {{1, 1, 1},    {63, 7, 1},    {64, 1, 7},    {65, 24, 24},    {1000, 24, 7},   {1, 768, 7},
                        {65, 7, 768}, {63, 768, 24}, {64, 769, 97}, {130, 100, 768}, {600, 1600, 200}};

std::vector<float> forward(std::int64_t rows, std::int64_t in, std::int64_t out, const std::vector<float>& x,
                           const std::vector<float>& w, const std::vector<float>& b) {
  std::vector<float> y(static_cast<std::size_t>(rows * out));
  auto a = layer_of({rows, in, out}, x.data(), w.data(), y.data());
  a.bias = b.data();
  ops::linear(Device::cpu, a);
  return y;
}

}  // namespace

TEST_CASE("a dense layer is the sum of products plus the bias, whatever the strides", "[core][ops][linear]") {
  ops::register_cpu_ops();
  for (const auto& [rows, in, out] : kSizes) {
    CAPTURE(rows, in, out);
    Strided x(rows, in, 5, 1);
    const auto w = random_floats(in * out, 2);
    const auto b = random_floats(out, 3);
    Reals expected = matrix_product(to_double(x.used()), to_double(w), rows, in, out);
    for (std::int64_t i = 0; i < rows * out; ++i) {
      expected[static_cast<std::size_t>(i)] += static_cast<double>(b[static_cast<std::size_t>(i % out)]);
    }
    Strided y(rows, out, 3, 4);
    ops::LinearForward a{.rows = rows,
                         .in = in,
                         .out = out,
                         .x = x.all.data(),
                         .x_stride = x.stride,
                         .weight = w.data(),
                         .bias = b.data(),
                         .y = y.all.data(),
                         .y_stride = y.stride};
    ops::linear(Device::cpu, a);
    const auto first = y.used();
    REQUIRE(near_all("y", first, expected, product_tolerance(in)));
    REQUIRE(y.untouched_outside());

    const auto turned = flipped(w, in, out);
    a.weight = turned.data();
    a.layout = WeightLayout::out_in;
    ops::linear(Device::cpu, a);
    REQUIRE(same_bits(first, y.used()));

    const auto packed = ops::pack_weights(Device::cpu, {turned.data(), in, out, WeightLayout::out_in});
    a.weight = nullptr;
    a.packed = &packed;
    ops::linear(Device::cpu, a);
    REQUIRE(same_bits(first, y.used()));
    REQUIRE(y.untouched_outside());
  }
}

TEST_CASE("a fused activation equals the activation of the kept sum", "[core][ops][linear]") {
  ops::register_cpu_ops();
  const std::int64_t rows = 70, out = 200;
  const std::int64_t in = GENERATE(24, 1600);  // summed at once, and in three steps
  const auto x = random_floats(rows * in, 1), w = random_floats(in * out, 2), b = random_floats(out, 3);
  const auto plain = forward(rows, in, out, x, w, b);
  for (const auto activation : {Activation::relu, Activation::tanh, Activation::gelu}) {
    std::vector<float> expected(plain.size());
    ops::activation_forward(Device::cpu, activation, plain.data(), expected.data(), rows * out);
    for (const bool keep : {false, true}) {
      Guarded y(rows * out), z(rows * out);
      auto a = layer_of({rows, in, out}, x.data(), w.data(), y.data());
      a.bias = b.data();
      a.activation = activation;
      a.pre_activation = keep ? z.data() : nullptr;
      ops::linear(Device::cpu, a);
      REQUIRE(same_bits(y.values(), expected));
      if (keep) REQUIRE(same_bits(z.values(), plain));
      REQUIRE(y.guards_intact());
      REQUIRE(z.guards_intact());
    }
  }
}

TEST_CASE("a row's bits do not depend on its position, its neighbours or their number", "[core][ops][linear]") {
  ops::register_cpu_ops();
  for (const std::int64_t in : {1, 7, 24, 100, 768, 1600}) {
    for (const std::int64_t out : {1, 2, 7, 24, 97, 193, 768}) {
      CAPTURE(in, out);
      const auto w = random_floats(in * out, 2), b = random_floats(out, 3);
      const std::int64_t rows = 130;
      const auto row = random_floats(in, 4);
      const auto alone = forward(1, in, out, row, w, b);
      // All rows equal: every position in a whole and in a partial tile gives the bits of the row computed alone.
      std::vector<float> x;
      for (std::int64_t i = 0; i < rows; ++i) x.insert(x.end(), row.begin(), row.end());
      const auto equal = forward(rows, in, out, x, w, b);
      for (std::int64_t i = 0; i < rows; ++i) {
        REQUIRE(std::memcmp(equal.data() + i * out, alone.data(), alone.size() * sizeof(float)) == 0);
      }
      // The other rows are different: large numbers and nan.
      x = random_floats(rows * in, 5, 1e6f);
      std::fill(x.begin(), x.begin() + in, std::nanf(""));
      for (const std::int64_t at : {5, 63, 64, 129}) {
        auto mixed = x;
        std::copy(row.begin(), row.end(), mixed.begin() + at * in);
        const auto y = forward(rows, in, out, mixed, w, b);
        REQUIRE(std::memcmp(y.data() + at * out, alone.data(), alone.size() * sizeof(float)) == 0);
      }
    }
  }
}

TEST_CASE("gradients of a dense layer are the products of the formula", "[core][ops][linear]") {
  ops::register_cpu_ops();
  for (const auto& [rows, in, out] : kSizes) {
    for (const auto layout : {WeightLayout::in_out, WeightLayout::out_in}) {
      CAPTURE(rows, in, out, static_cast<int>(layout));
      Strided x(rows, in, 2, 1), dz(rows, out, 4, 2), dx(rows, in, 1, 3);
      const auto w = random_floats(in * out, 4);
      const auto dx_before = dx.used();
      const Reals x64 = to_double(x.used()), dz64 = to_double(dz.used());
      const Reals w64 = to_double(layout == WeightLayout::in_out ? w : flipped(w, out, in));
      const Reals dx64 = matrix_product(dz64, transposed(w64, in, out), rows, out, in);
      Reals dw64 = matrix_product(transposed(x64, rows, in), dz64, in, rows, out);
      if (layout == WeightLayout::out_in) dw64 = transposed(dw64, in, out);
      Reals db64(static_cast<std::size_t>(out), 0.0);
      for (std::size_t i = 0; i < dz64.size(); ++i) db64[i % static_cast<std::size_t>(out)] += dz64[i];

      const auto dw_before = random_floats(in * out, 5), db_before = random_floats(out, 6);
      Guarded dw(dw_before), db(db_before);
      ops::LinearBackward a{.rows = rows,
                            .in = in,
                            .out = out,
                            .dz = dz.all.data(),
                            .dz_stride = dz.stride,
                            .x = x.all.data(),
                            .x_stride = x.stride,
                            .weight = w.data(),
                            .layout = layout,
                            .dx = dx.all.data(),
                            .dx_stride = dx.stride,
                            .dweight = dw.data(),
                            .dbias = db.data()};
      ops::linear_backward(Device::cpu, a);
      REQUIRE(near_all("dx", dx.used(), dx64, product_tolerance(out)));
      REQUIRE(dx.untouched_outside());
      for (std::size_t i = 0; i < dw64.size(); ++i) dw64[i] += static_cast<double>(dw_before[i]);
      for (std::size_t i = 0; i < db64.size(); ++i) db64[i] += static_cast<double>(db_before[i]);
      REQUIRE(near_all("dW", dw.values(), dw64, product_tolerance(rows)));
      REQUIRE(near_all("db", db.values(), db64, product_tolerance(rows)));
      REQUIRE(dw.guards_intact());
      REQUIRE(db.guards_intact());

      // Only the bias gradient: the same blocks give the same bits.
      Guarded db_alone(db_before);
      a.dx = nullptr;
      a.dweight = nullptr;
      a.dbias = db_alone.data();
      ops::linear_backward(Device::cpu, a);
      REQUIRE(same_bits(db_alone.values(), db.values()));
      REQUIRE(db_alone.guards_intact());

      // Only dx, added to initial values; x may then be missing.
      Strided sum(rows, in, 1, 3);
      Reals sum64 = to_double(dx_before);
      for (std::size_t i = 0; i < sum64.size(); ++i) sum64[i] += dx64[i];
      a.dx = sum.all.data();
      a.add_to_dx = true;
      a.x = nullptr;
      a.dweight = nullptr;
      a.dbias = nullptr;
      ops::linear_backward(Device::cpu, a);
      REQUIRE(near_all("dx +=", sum.used(), sum64, product_tolerance(out)));
      REQUIRE(sum.untouched_outside());
    }
  }
}

TEST_CASE("a weight gradient written over other numbers has the bits of one added to zeros", "[core][ops][linear]") {
  ops::register_cpu_ops();
  for (const auto& [rows, in, out] : {Sizes{1, 1, 1}, Sizes{65, 7, 768}, Sizes{513, 97, 200}, Sizes{1100, 200, 97}}) {
    const auto x = random_floats(rows * in, 1), dz = random_floats(rows * out, 2);
    for (const auto layout : {WeightLayout::in_out, WeightLayout::out_in}) {
      for (const auto compute : {ComputeType::fp32, ComputeType::bf16}) {
        if (!cpu_offers(compute)) continue;
        CAPTURE(rows, in, out, static_cast<int>(layout), static_cast<int>(compute));
        const auto run = [&, s = Sizes{rows, in, out}](float before, bool add) {
          Guarded dw(s.in * s.out, before);
          auto a = gradients_of(s, dz.data(), x.data());
          a.layout = layout;
          a.compute = compute;
          a.dweight = dw.data();
          a.add_to_dweight = add;
          ops::linear_backward(Device::cpu, a);
          CHECK(dw.guards_intact());
          return dw.values();
        };
        CHECK(same_bits(run(std::numeric_limits<float>::quiet_NaN(), false), run(0, true)));
      }
    }
  }
}

TEST_CASE("central differences confirm the gradients of a dense layer", "[core][ops][linear]") {
  ops::register_cpu_ops();
  const std::int64_t rows = 3, in = 4, out = 2;
  const auto x = random_floats(rows * in, 1), w = random_floats(in * out, 2), dz = random_floats(rows * out, 3);
  const auto loss = [&](const Reals& x_, const Reals& w_) {
    const Reals y = matrix_product(x_, w_, rows, in, out);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * static_cast<double>(dz[i]);
    return sum;
  };
  Guarded dx(rows * in), dw(in * out), db(out);
  auto a = gradients_of({rows, in, out}, dz.data(), x.data());
  a.weight = w.data();
  a.dx = dx.data();
  a.dweight = dw.data();
  a.dbias = db.data();
  ops::linear_backward(Device::cpu, a);
  const auto x_loss = [&](const Reals& v) { return loss(v, to_double(w)); };
  const auto w_loss = [&](const Reals& v) { return loss(to_double(x), v); };
  REQUIRE(near_all("dx", dx.values(), central_differences(x_loss, to_double(x)), 1e-6));
  REQUIRE(near_all("dW", dw.values(), central_differences(w_loss, to_double(w)), 1e-6));
}

TEST_CASE("an added dx has the row rule, too", "[core][ops][linear]") {
  ops::register_cpu_ops();
  const std::int64_t rows = 130, in = 200, out = 1600;  // dz·Wᵀ in three steps
  const auto w = random_floats(in * out, 1), dz_row = random_floats(out, 2), dx_row = random_floats(in, 3);
  std::vector<float> dz, dx;
  for (std::int64_t i = 0; i < rows; ++i) {
    dz.insert(dz.end(), dz_row.begin(), dz_row.end());
    dx.insert(dx.end(), dx_row.begin(), dx_row.end());
  }
  auto a = gradients_of({rows, in, out}, dz.data(), nullptr);
  a.weight = w.data();
  a.dx = dx.data();
  a.add_to_dx = true;
  ops::linear_backward(Device::cpu, a);
  for (std::int64_t i = 1; i < rows; ++i) {
    REQUIRE(std::memcmp(dx.data(), dx.data() + i * in, static_cast<std::size_t>(in) * sizeof(float)) == 0);
  }
}

TEST_CASE("dense layers have the same bits for 1, 2 and 4 threads", "[core][ops][linear]") {
  ops::register_cpu_ops();
  for (const auto& [rows, in, out] :
       {Sizes{65, 24, 24}, Sizes{1000, 24, 7}, Sizes{600, 500, 400}, Sizes{1030, 300, 1000}, Sizes{1030, 1600, 200}}) {
    CAPTURE(rows, in, out);
    const auto x = random_floats(rows * in, 1), w = random_floats(in * out, 2), b = random_floats(out, 3);
    const auto dz = random_floats(rows * out, 4);
    REQUIRE(same_bits_for_any_thread_count([&, r = rows, i = in, o = out] { return forward(r, i, o, x, w, b); }));
    REQUIRE(same_bits_for_any_thread_count([&, r = rows, i = in, o = out] {
      std::vector<float> all(static_cast<std::size_t>(r * i + i * o + o));  // dx, dW, db
      auto a = gradients_of({r, i, o}, dz.data(), x.data());
      a.weight = w.data();
      a.dx = all.data();
      a.dweight = all.data() + r * i;
      a.dbias = a.dweight + i * o;
      ops::linear_backward(Device::cpu, a);
      return all;
    }));
  }
}

// The tile size depends on the number of threads.
TEST_CASE("weight gradients of wide layers have the same bits for 1, 2, 3 and 16 threads", "[core][ops][linear]") {
  ops::register_cpu_ops();
  const int before = thread_count();
  for (const auto& [rows, in, out] : {Sizes{520, 768, 3072}, Sizes{520, 3072, 768}, Sizes{512, 1024, 4096},
                                      Sizes{512, 250, 1024}, Sizes{512, 1024, 250}, Sizes{512, 2048, 1024}}) {
    CAPTURE(rows, in, out);
    const auto x = random_floats(rows * in, 1), dz = random_floats(rows * out, 2);
    std::vector<float> first;
    for (const int threads : {1, 2, 3, 16}) {
      CAPTURE(threads);
      set_thread_count(threads);
      std::vector<float> dw(static_cast<std::size_t>(in * out));
      auto a = gradients_of({rows, in, out}, dz.data(), x.data());
      a.dweight = dw.data();
      ops::linear_backward(Device::cpu, a);
      if (first.empty()) first = dw;
      REQUIRE(same_bits(dw, first));
    }
  }
  set_thread_count(before);
}

TEST_CASE("rows of wide layers do not know their position, whatever the distance of rows", "[core][ops][linear]") {
  ops::register_cpu_ops();
  for (const auto& [rows, in, out] : {Sizes{70, 1024, 250}, Sizes{70, 3072, 192}, Sizes{70, 192, 3072}}) {
    CAPTURE(rows, in, out);
    const auto w = random_floats(in * out, 2), b = random_floats(out, 3), row = random_floats(in, 4);
    const auto alone = forward(1, in, out, row, w, b);
    std::vector<float> x;
    for (std::int64_t i = 0; i < rows; ++i) x.insert(x.end(), row.begin(), row.end());
    const auto all = forward(rows, in, out, x, w, b);
    for (std::int64_t i = 0; i < rows; ++i) {
      REQUIRE(std::memcmp(all.data() + i * out, alone.data(), alone.size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("weights too large for the scratch are packed in several groups", "[core][ops][linear]") {
  ops::register_cpu_ops();
  const std::int64_t rows = 2, in = 2048, out = 192 * 11 + 5;  // a group holds ten panels of 192 columns
  const auto x = random_floats(rows * in, 1), w = random_floats(in * out, 2), b = random_floats(out, 3);
  const auto y = forward(rows, in, out, x, w, b);
  Reals expected = matrix_product(to_double(x), to_double(w), rows, in, out);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] += static_cast<double>(b[i % static_cast<std::size_t>(out)]);
  }
  REQUIRE(near_all("y", y, expected, product_tolerance(in)));
}

TEST_CASE("no rows is no work", "[core][ops][linear]") {
  ops::register_cpu_ops();
  const auto w = random_floats(6, 1);
  ops::LinearForward a{.in = 2, .out = 3, .weight = w.data()};
  REQUIRE_NOTHROW(ops::linear(Device::cpu, a));
  ops::LinearBackward back{.in = 2, .out = 3};
  REQUIRE_NOTHROW(ops::linear_backward(Device::cpu, back));
}
