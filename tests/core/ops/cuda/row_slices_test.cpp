// Dense layers under strict determinism, cut into slices of rows, on the emulator.
#include "etc_core/ops/cuda/row_slices.h"

#include "etc_core/ops/cuda/register_cuda.h"
#include "etc_core/ops/determinism.h"
#include "etc_core/ops/linear.h"
#include "etc_core/ops/register.h"
#include "tests/core/ops/cuda/both_backends.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;

namespace {

constexpr std::int64_t kIn = 9, kOut = 16, kGap = 3;  // kGap: floats between rows
constexpr std::int64_t kSlice = ops::cuda::kSliceRows;

// Sets strict determinism for the lifetime of this object.
struct Strict {
  Strict() {
    ops::register_cpu_ops();
    ops::register_cuda_ops();
    ops::set_determinism(ops::Determinism::strict);
  }
  ~Strict() { ops::set_determinism(ops::Determinism::run); }
};

struct Layer {
  std::vector<float> x = random_floats((2 * kSlice + 5) * (kIn + kGap), 1), w = random_floats(kIn * kOut, 2);
  std::vector<float> bias = random_floats(kOut, 3);
  ops::PackedWeights packed;  // empty: unpacked weights

  // y and z of rows [first, first + rows) of x.
  std::pair<std::vector<float>, std::vector<float>> forward(Device device, std::int64_t first,
                                                            std::int64_t rows) const {
    Guarded y(rows * (kOut + kGap), 5.0f), z(rows * kOut);
    ops::LinearForward a{
        .rows = rows, .in = kIn, .out = kOut, .x = x.data() + first * (kIn + kGap), .x_stride = kIn + kGap};
    if (packed.in > 0) {
      a.packed = &packed;
    } else {
      a.weight = w.data();
    }
    a.bias = bias.data();
    a.activation = ops::Activation::gelu;
    a.pre_activation = z.data();
    a.y = y.data();
    a.y_stride = kOut + kGap;
    ops::linear(device, a);
    CHECK(y.guards_intact());
    CHECK(z.guards_intact());
    return {y.values(), z.values()};
  }

  // dx of the first rows of dz (stored in x), added to ones.
  std::vector<float> backward(Device device, std::int64_t rows) const {
    Guarded dx(rows * (kOut + kGap), 1.0f);
    ops::LinearBackward a{
        .rows = rows, .in = kOut, .out = kIn, .dz = x.data(), .dz_stride = kIn + kGap, .x = x.data(), .x_stride = kOut};
    a.weight = w.data();  // [kOut, kIn]
    a.dx = dx.data();
    a.dx_stride = kOut + kGap;
    a.add_to_dx = true;
    ops::linear_backward(device, a);
    CHECK(dx.guards_intact());
    return dx.values();
  }
};

// Rows [first, first + rows) of a matrix.
std::vector<float> part(const std::vector<float>& all, std::int64_t width, std::int64_t first, std::int64_t rows) {
  return {all.begin() + first * width, all.begin() + (first + rows) * width};
}

}  // namespace

TEST_CASE("strict dense layers equal the CPU's for any number of slices", "[ops][cuda]") {
  const Strict strict;
  const Layer layer;
  for (const std::int64_t rows : {std::int64_t{1}, kSlice - 1, kSlice, kSlice + 1, 2 * kSlice + 5}) {
    CAPTURE(rows);
    const auto cpu = layer.forward(Device::cpu, 0, rows), cuda = layer.forward(Device::cuda, 0, rows);
    // Sums of 9 products of numbers below 1: a few roundings of 6e-8 each.
    CHECK(near_all("y", cuda.first, doubles(cpu.first), 3e-6));
    CHECK(near_all("z", cuda.second, doubles(cpu.second), 3e-6));
    CHECK(near_all("dx", layer.backward(Device::cuda, rows), doubles(layer.backward(Device::cpu, rows)), 3e-6));
  }
}

TEST_CASE("a row of a strict dense layer does not depend on the others; without, the emulated library makes it",
          "[ops][cuda]") {
  Layer layer;
  const auto differs = [&] {
    const auto all = layer.forward(Device::cuda, 0, kSlice + 70), few = layer.forward(Device::cuda, kSlice - 2, 5);
    const auto dx = layer.backward(Device::cuda, kSlice + 70);
    return !(same_bits(part(all.first, kOut + kGap, kSlice - 2, 5), few.first) &&
             same_bits(part(all.second, kOut, kSlice - 2, 5), few.second) &&
             same_bits(part(dx, kOut + kGap, 0, 5), layer.backward(Device::cuda, 5)));
  };
  for (const bool bf16 : {false, true}) {
    CAPTURE(bf16);
    {
      const Strict strict;
      if (bf16) {
        layer.packed = ops::pack_weights(Device::cuda, {layer.w.data(), kIn, kOut}, ComputeType::bf16);
      }
      CHECK(!differs());
    }
    CHECK(differs());
  }
}
