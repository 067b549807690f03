// Operators of the CPU on arrays of bf16. They are compared bit by bit with fp32 arrays; that bits do not depend on the
// position of a row is tested in fp32.
#include <bit>
#include <cmath>
#include <limits>

#include "etc_core/base/backend.h"
#include "etc_core/base/cpu_features.h"
#include "etc_core/ops/activation.h"
#include "etc_core/ops/elementwise.h"
#include "etc_core/ops/register.h"
#include "tests/core/ops/bf16_arrays.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;
using ops::Activation;
using ops::WeightLayout;

namespace {

// Rows: less than one tile, one tile, several, more than a block of 512 tokens. Columns: less than a vector, a partial
// panel, several panels.
const std::vector<GappedSizes> kGapped = {{1, 8, 200, 8},    {63, 200, 8, 0},   {64, 776, 200, 0},
                                          {65, 200, 776, 8}, {1100, 776, 8, 0}, {1100, 8, 776, 8}};
const std::vector<std::int64_t> kWidths = {2, 24, 200, 256, 258, 770, 776};

bool offered(ComputeType compute) {
  if (cpu_offers(compute)) return true;
  WARN("skipped: this processor has no " << compute_type_name(compute) << " products");
  return false;
}

// With x, y or both in bf16: expects the fp32 result, with y and z rounded where they are bf16.
void check_layer(const LayerCase& of) {
  const LayerResult fp32 = run_layer(of, false, false);
  for (const auto& [x_bf16, y_bf16] : {std::pair(true, true), std::pair(true, false), std::pair(false, true)}) {
    CAPTURE(x_bf16, y_bf16);
    const LayerResult bf16 = run_layer(of, x_bf16, y_bf16);
    CHECK(same_bits(bf16.y, y_bf16 ? rounded(fp32.y) : fp32.y));
    CHECK(same_bits(bf16.z, y_bf16 ? rounded(fp32.z) : fp32.z));
  }
}

}  // namespace

TEST_CASE("the CPU keeps arrays of bf16 beside products in bf16", "[ops]") {
  CHECK(keeps_bf16(Device::cpu, ComputeType::bf16));
  CHECK(!keeps_bf16(Device::cpu, ComputeType::fp32));
}

TEST_CASE("layers on arrays of bf16 give the rounded results of arrays of fp32", "[ops][reduced]") {
  ops::register_cpu_ops();
  for (const ComputeType compute : {ComputeType::bf16, ComputeType::int8}) {
    if (!offered(compute)) continue;
    for (const GappedSizes& s : kGapped) {
      for (const auto layout : {WeightLayout::in_out, WeightLayout::out_in}) {
        for (const auto act : {Activation::linear, Activation::gelu, Activation::relu}) {
          for (const bool packed : {false, true}) {
            if (compute == ComputeType::int8 && !packed) continue;
            CAPTURE(compute_type_name(compute), s.rows, s.in, s.out, static_cast<int>(layout));
            CAPTURE(ops::activation_name(act), packed);
            check_layer({.device = Device::cpu,
                         .sizes = s,
                         .layout = layout,
                         .compute = compute,
                         .activation = act,
                         .kept = act == Activation::gelu,
                         .packed = packed});
          }
        }
      }
    }
  }
}

TEST_CASE("gradients on arrays of bf16, all or some of them, are those of arrays of fp32, dx rounded",
          "[ops][reduced]") {
  ops::register_cpu_ops();
  if (!offered(ComputeType::bf16)) return;
  for (const GappedSizes& s : kGapped) {
    for (const auto layout : {WeightLayout::in_out, WeightLayout::out_in}) {
      for (const bool add : {false, true}) {
        const GradientCase of{.device = Device::cpu, .sizes = s, .layout = layout, .add = add};
        const GradientResult fp32 = run_gradients(of, {false, false, false});
        for (const GradientTypes& types : {GradientTypes{true, true, true}, GradientTypes{true, false, false},
                                           GradientTypes{false, true, false}, GradientTypes{false, false, true}}) {
          CAPTURE(s.rows, s.in, s.out, static_cast<int>(layout), add, types.dz, types.x, types.dx);
          const GradientResult bf16 = run_gradients(of, types);
          CHECK(same_bits(bf16.dx, types.dx ? rounded(fp32.dx) : fp32.dx));
          CHECK(same_bits(bf16.dweight, fp32.dweight));
          CHECK(same_bits(bf16.dbias, fp32.dbias));
        }
      }
    }
  }
}

TEST_CASE("the gradient of a bias alone has the same bits from dz in bf16, on any processor", "[ops][reduced]") {
  ops::register_cpu_ops();
  for (const GappedSizes& s : kGapped) {
    CAPTURE(s.rows, s.out);
    const GradientCase of{.device = Device::cpu, .sizes = s, .bias_only = true};
    CHECK(same_bits(run_gradients(of, {true, false, false}).dbias, run_gradients(of, {false, false, false}).dbias));
  }
}

TEST_CASE("layers and gradients on arrays of bf16 have the same bits for 1, 2 and 4 threads", "[ops][reduced]") {
  ops::register_cpu_ops();
  const GappedSizes sizes{1100, 200, 400, 8};
  for (const ComputeType compute : {ComputeType::bf16, ComputeType::int8}) {
    if (!offered(compute)) continue;
    CHECK(same_bits_for_any_thread_count([&] {
      return run_layer({.device = Device::cpu, .sizes = sizes, .compute = compute, .packed = true}, true, true).y;
    }));
  }
  if (!offered(ComputeType::bf16)) return;
  CHECK(same_bits_for_any_thread_count([&] {
    GradientResult all = run_gradients({.device = Device::cpu, .sizes = sizes, .add = true}, {true, true, true});
    for (const auto& more : {all.dweight, all.dbias}) all.dx.insert(all.dx.end(), more.begin(), more.end());
    return all.dx;
  }));
}

TEST_CASE("activations, sums and norms on arrays of bf16 round what they compute in fp32", "[ops]") {
  ops::register_cpu_ops();
  // The last size needs several tasks.
  check_bf16_activations_and_sums(Device::cpu, {2, 6, 14, 18, 510, 512, 514, 3000, 40010});
  check_bf16_norms(Device::cpu, 70, kWidths);
}

TEST_CASE("norms give a branch its gradient rounded to bf16", "[ops]") {
  ops::register_cpu_ops();
  check_bf16_norm_gradients(Device::cpu, 70, kWidths);
}

TEST_CASE("NaN stays NaN and infinity infinity where results are rounded to bf16", "[ops][reduced]") {
  ops::register_cpu_ops();
  constexpr std::int64_t kRows = 3, kIn = 8, kOut = 24;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  // All mantissa bits of this NaN are cut off by rounding. The largest float is nearer to infinity than to the largest
  // bf16.
  const float nan = std::bit_cast<float>(0x7f800001u), largest = std::numeric_limits<float>::max();
  std::vector<float> bias(kOut, 1.0f);
  bias[0] = nan;
  bias[1] = kInfinity;
  bias[2] = -kInfinity;
  bias[3] = -largest;
  bias[20] = nan;  // in a partial vector
  bias[21] = kInfinity;
  const std::vector<float> w(kIn * kOut);
  std::vector<float> x(kRows * kIn);
  x[kIn] = nan;  // of the second row
  Bf16Array x_bf16(x);
  for (const ComputeType compute : {ComputeType::bf16, ComputeType::int8}) {
    if (!offered(compute)) continue;
    CAPTURE(compute_type_name(compute));
    const auto packed = ops::pack_weights(Device::cpu, {w.data(), kIn, kOut}, compute);
    Bf16Array y_bf16(kRows * kOut);
    ops::LinearForward a{.rows = kRows, .in = kIn, .out = kOut, .x_bf16 = x_bf16.data(), .x_stride = kIn};
    a.packed = &packed;
    a.bias = bias.data();
    a.y_bf16 = y_bf16.data();
    a.y_stride = kOut;
    ops::linear(Device::cpu, a);
    const auto y = y_bf16.values();
    for (std::size_t i = 0; i < y.size(); ++i) {
      const float expected = i / kOut == 1 ? nan : bias[i % kOut] == -largest ? -kInfinity : bias[i % kOut];
      CAPTURE(i, y[i], expected);
      CHECK((std::isnan(expected) ? std::isnan(y[i]) : y[i] == expected));
    }
  }
  Bf16Array made(kOut);
  ops::round_to_bf16(Device::cpu, bias.data(), made.data(), kOut);
  CHECK((std::isnan(made.values()[0]) && std::isnan(made.values()[20])));
  CHECK((made.values()[21] == kInfinity && made.values()[3] == -kInfinity));
}

TEST_CASE("the CPU refuses arrays of bf16 where nobody reads them", "[ops]") {
  ops::register_cpu_ops();
  check_bf16_refusals(Device::cpu);
}
