// Dense layers of the CUDA backend, with plain loops for the library's product, against the CPU's.
#include "etc_core/base/error.h"
#include "etc_core/ops/activation.h"
#include "etc_core/ops/linear.h"
#include "tests/core/ops/bf16_arrays.h"
#include "tests/core/ops/cuda/both_backends.h"
#include "tests/core/ops/linear_support.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/simt/emulator.h"

using namespace etc;
using namespace etc::test;
using Catch::Matchers::Contains;
using ops::Activation;
using ops::WeightLayout;

namespace {

const std::vector<GappedSizes> kGappedSizes = {{1, 1, 1, 0}, {5, 3, 7, 2}, {70, 24, 16, 0}, {130, 9, 33, 5}};

// The common arguments of the calls: sizes and inputs, whose strides exceed the row length by s.gap numbers.
ops::LinearForward layer_of(const GappedSizes& s, const std::vector<float>& x) {
  return {.rows = s.rows, .in = s.in, .out = s.out, .x = x.data(), .x_stride = s.in + s.gap};
}

ops::LinearBackward gradients_of(const GappedSizes& s, const std::vector<float>& x, const std::vector<float>& dz,
                                 const std::vector<float>& w, WeightLayout layout) {
  return {.rows = s.rows,
          .in = s.in,
          .out = s.out,
          .dz = dz.data(),
          .dz_stride = s.out + s.gap,
          .x = x.data(),
          .x_stride = s.in + s.gap,
          .weight = w.data(),
          .layout = layout};
}

}  // namespace

TEST_CASE("emulated dense layers equal the CPU's, every layout and activation", "[ops][cuda]") {
  register_both();
  for (const GappedSizes& s : kGappedSizes) {
    const auto x = random_floats(s.rows * (s.in + s.gap), 1), w = random_floats(s.in * s.out, 2);
    const auto bias = random_floats(s.out, 3);
    for (const auto layout : {WeightLayout::in_out, WeightLayout::out_in}) {
      for (const auto act :
           {Activation::linear, Activation::relu, Activation::tanh, Activation::gelu, Activation::gelu_erf}) {
        for (const int given : {0, 1, 2, 3}) {  // bit 0: bias, bit 1: the pre-activation is kept
          for (const bool packed : {false, true}) {
            CAPTURE(s.rows, s.in, s.out, static_cast<int>(layout), ops::activation_name(act), given, packed);
            const auto run = [&](Device device) {
              const auto matrix =
                  packed ? ops::pack_weights(device, {w.data(), s.in, s.out, layout}) : ops::PackedWeights();
              Guarded y(s.rows * (s.out + s.gap), 5.0f), z(s.rows * s.out);
              ops::LinearForward a = layer_of(s, x);
              a.layout = layout;
              if (packed) {
                a.packed = &matrix;
              } else {
                a.weight = w.data();
              }
              if (given & 1) a.bias = bias.data();
              if ((given & 2) && act != Activation::linear) a.pre_activation = z.data();
              a.activation = act;
              a.y = y.data();
              a.y_stride = s.out + s.gap;
              ops::linear(device, a);
              CHECK(y.guards_intact());
              CHECK(z.guards_intact());
              return std::pair(y.values(), z.values());
            };
            const auto cpu = run(Device::cpu), cuda = run(Device::cuda);
            // Sums of at most 24 products of numbers below 1: a few roundings of 6e-8 each.
            CHECK(near_all("y", cuda.first, doubles(cpu.first), 3e-6));
            CHECK(near_all("z", cuda.second, doubles(cpu.second), 3e-6));
          }
        }
      }
    }
  }
}

TEST_CASE("emulated gradients of dense layers equal the CPU's, written and added", "[ops][cuda]") {
  register_both();
  for (const GappedSizes& s : kGappedSizes) {
    const auto x = random_floats(s.rows * (s.in + s.gap), 4), w = random_floats(s.in * s.out, 5);
    const auto dz = random_floats(s.rows * (s.out + s.gap), 6);
    for (const auto layout : {WeightLayout::in_out, WeightLayout::out_in}) {
      for (const int wanted : {1, 2, 3, 4, 7}) {  // dx, dweight, dbias
        for (const bool add : {false, true}) {
          CAPTURE(s.rows, s.in, s.out, static_cast<int>(layout), wanted, add);
          const auto run = [&](Device device) {
            Guarded dx(s.rows * (s.in + s.gap), 0.5f), dweight(s.in * s.out, 0.25f), dbias(s.out, -1.0f);
            ops::LinearBackward a = gradients_of(s, x, dz, w, layout);
            if (wanted & 1) a.dx = dx.data();
            a.dx_stride = s.in + s.gap;
            a.add_to_dx = add;
            if (wanted & 2) a.dweight = dweight.data();
            a.add_to_dweight = add;
            if (wanted & 4) a.dbias = dbias.data();
            ops::linear_backward(device, a);
            CHECK(dx.guards_intact());
            CHECK(dweight.guards_intact());
            CHECK(dbias.guards_intact());
            auto all = dx.values();
            for (const auto& more : {dweight.values(), dbias.values()}) all.insert(all.end(), more.begin(), more.end());
            return all;
          };
          // Sums of at most 130 products of numbers below 1.
          CHECK(near_all("gradients", run(Device::cuda), doubles(run(Device::cpu)), 2e-5));
        }
      }
    }
  }
}

TEST_CASE("emulated layers and gradients in bf16 are the products of rounded operands", "[ops][cuda]") {
  register_both();
  for (const GappedSizes& s : kGappedSizes) {
    for (const auto layout : {WeightLayout::in_out, WeightLayout::out_in}) {
      CAPTURE(s.rows, s.in, s.out, static_cast<int>(layout));
      auto x = random_floats(s.rows * (s.in + s.gap), 4), w = random_floats(s.in * s.out, 5);
      auto dz = random_floats(s.rows * (s.out + s.gap), 6);
      // y, dx and dW in one array.
      const auto run = [&](Device device, ComputeType compute) {
        Guarded y(s.rows * s.out), dx(s.rows * s.in, 0.5f), dweight(s.in * s.out, 0.25f);
        ops::LinearForward a = layer_of(s, x);
        a.weight = w.data();
        a.layout = layout;
        a.compute = compute;
        a.y = y.data();
        a.y_stride = s.out;
        ops::linear(device, a);
        ops::LinearBackward back = gradients_of(s, x, dz, w, layout);
        back.compute = compute;
        back.dx = dx.data();
        back.dx_stride = s.in;
        back.add_to_dx = true;
        back.dweight = dweight.data();
        ops::linear_backward(device, back);
        CHECK((y.guards_intact() && dx.guards_intact() && dweight.guards_intact()));
        auto all = y.values();
        for (const auto& more : {dx.values(), dweight.values()}) all.insert(all.end(), more.begin(), more.end());
        return all;
      };
      const auto got = run(Device::cuda, ComputeType::bf16);
      for (auto* operand : {&x, &w, &dz}) {
        for (float& number : *operand) number = bf16(number);
      }
      CHECK(near_all("rounded before", got, doubles(run(Device::cpu, ComputeType::fp32)), 2e-5));
    }
  }
}

TEST_CASE("weights packed in bf16 round both factors to eight bits of mantissa", "[ops][cuda]") {
  register_both();
  for (const GappedSizes& s : kGappedSizes) {
    const auto x = random_floats(s.rows * (s.in + s.gap), 7), w = random_floats(s.in * s.out, 8);
    for (const auto layout : {WeightLayout::in_out, WeightLayout::out_in}) {
      CAPTURE(s.rows, s.in, s.out, static_cast<int>(layout));
      const auto run = [&](Device device, ComputeType compute) {
        const auto matrix = ops::pack_weights(device, {w.data(), s.in, s.out, layout}, compute);
        Guarded y(s.rows * s.out);
        ops::LinearForward a = layer_of(s, x);
        a.packed = &matrix;
        a.y = y.data();
        a.y_stride = s.out;
        ops::linear(device, a);
        CHECK(y.guards_intact());
        return y.values();
      };
      const auto rounded = run(Device::cuda, ComputeType::bf16);
      const auto exact = run(Device::cpu, ComputeType::fp32);
      // Each factor has a relative error of at most 2^-8, and products are below 1.
      CHECK(near_all("y", rounded, doubles(exact), 2.0 * 0x1p-8 * static_cast<double>(s.in)));
      if (s.in > 1) CHECK(rounded != exact);
    }
  }
  CHECK_THROWS_WITH(ops::pack_weights(Device::cuda, {random_floats(4, 9).data(), 2, 2}, ComputeType::int8),
                    Contains("cuda: expected fp32 or bf16, got int8"));
}
