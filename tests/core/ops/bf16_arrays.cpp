#include "tests/core/ops/bf16_arrays.h"

#include <string>

#include "etc_core/ops/activation.h"
#include "etc_core/ops/elementwise.h"
#include "etc_core/ops/layer_norm.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

namespace etc::test {

using Catch::Matchers::Contains;
using ops::Activation;

namespace {
constexpr std::size_t kGuard = 64;
constexpr std::uint16_t kMark = 0x7abc;
constexpr float kInitial = 0.25f;  // initial value of outputs
}  // namespace

Bf16Array::Bf16Array(const std::vector<float>& values) : size_(values.size()) {
  for (const float value : values) all_.push_back({bf16_from_float(value)});
  all_.resize(size_ + kGuard, Bf16{kMark});
}

Bf16Array::Bf16Array(std::int64_t size, float initial)
    : Bf16Array(std::vector<float>(static_cast<std::size_t>(size), initial)) {}

std::vector<float> Bf16Array::values() const {
  std::vector<float> result;
  for (std::size_t i = 0; i < size_; ++i) result.push_back(float_from_bf16(all_[i].bits));
  return result;
}

bool Bf16Array::guard_intact() const {
  for (std::size_t i = size_; i < all_.size(); ++i) {
    if (all_[i].bits != kMark) return false;
  }
  return true;
}

std::vector<float> rounded(std::vector<float> values) {
  for (float& value : values) value = float_from_bf16(bf16_from_float(value));
  return values;
}

LayerResult run_layer(const LayerCase& of, bool x_bf16, bool y_bf16) {
  const GappedSizes& s = of.sizes;
  const auto x = rounded(random_floats(s.rows * (s.in + s.gap), 1)), w = random_floats(s.in * s.out, 2);
  const auto bias = rounded(random_floats(s.out, 3));
  // On a GPU, activations in a separate pass need y without gaps.
  const bool gaps = of.device == Device::cpu || of.activation == Activation::linear;
  const std::int64_t y_stride = gaps ? s.out + s.gap : s.out;
  const auto matrix =
      of.packed ? ops::pack_weights(of.device, {w.data(), s.in, s.out, of.layout}, of.compute) : ops::PackedWeights();
  ops::LinearForward a{.rows = s.rows, .in = s.in, .out = s.out, .x_stride = s.in + s.gap};
  a.layout = of.layout;
  a.compute = of.compute;
  if (of.packed) {
    a.packed = &matrix;
  } else {
    a.weight = w.data();
  }
  a.bias = bias.data();
  a.activation = of.activation;
  a.y_stride = y_stride;
  Bf16Array half_x(x), half_y(s.rows * y_stride, kInitial), half_z(s.rows * s.out, kInitial);
  Guarded y(s.rows * y_stride, kInitial), z(s.rows * s.out, kInitial);
  a.x = x_bf16 ? nullptr : x.data();
  a.x_bf16 = x_bf16 ? half_x.data() : nullptr;
  if (y_bf16) {
    a.y_bf16 = half_y.data();
    if (of.kept) a.pre_activation_bf16 = half_z.data();
  } else {
    a.y = y.data();
    if (of.kept) a.pre_activation = z.data();
  }
  ops::linear(of.device, a);
  CHECK((half_y.guard_intact() && half_z.guard_intact() && y.guards_intact() && z.guards_intact()));
  return y_bf16 ? LayerResult{half_y.values(), half_z.values()} : LayerResult{y.values(), z.values()};
}

GradientResult run_gradients(const GradientCase& of, const GradientTypes& bf16) {
  const GappedSizes& s = of.sizes;
  const auto x = rounded(random_floats(s.rows * (s.in + s.gap), 4)), w = random_floats(s.in * s.out, 5);
  const auto dz = rounded(random_floats(s.rows * (s.out + s.gap), 6));
  const auto before = rounded(random_floats(s.rows * (s.in + s.gap), 7));
  Bf16Array half_x(x), half_dz(dz), half_dx(before);
  Guarded dx(before), dweight(s.in * s.out, kInitial), dbias(s.out, -1.0f);
  ops::LinearBackward a{.rows = s.rows,
                        .in = s.in,
                        .out = s.out,
                        .dz_stride = s.out + s.gap,
                        .x_stride = s.in + s.gap,
                        .weight = w.data(),
                        .layout = of.layout,
                        .compute = ComputeType::bf16,
                        .dx_stride = s.in + s.gap,
                        .add_to_dx = of.add,
                        .dbias = dbias.data()};
  a.dz = bf16.dz ? nullptr : dz.data();
  a.dz_bf16 = bf16.dz ? half_dz.data() : nullptr;
  if (!of.bias_only) {
    a.dweight = dweight.data();
    a.x = bf16.x ? nullptr : x.data();
    a.x_bf16 = bf16.x ? half_x.data() : nullptr;
    a.dx = bf16.dx ? nullptr : dx.data();
    a.dx_bf16 = bf16.dx ? half_dx.data() : nullptr;
  }
  ops::linear_backward(of.device, a);
  CHECK((half_dx.guard_intact() && dx.guards_intact() && dweight.guards_intact() && dbias.guards_intact()));
  return {bf16.dx ? half_dx.values() : dx.values(), dweight.values(), dbias.values()};
}

namespace {

void check_sums(Device device, const std::vector<float>& a, const std::vector<float>& b) {
  const auto size = static_cast<std::int64_t>(a.size());
  Bf16Array half_a(a), half_b(b), sum(size), made(size);
  ops::add(device, half_a.data(), half_b.data(), sum.data(), size);
  Guarded expected(size);
  ops::add(device, a.data(), b.data(), expected.data(), size);
  CHECK((sum.guard_intact() && same_bits(sum.values(), rounded(expected.values()))));
  ops::add(device, half_a.data(), half_b.data(), half_b.data(), size);  // in place
  CHECK((half_b.guard_intact() && same_bits(half_b.values(), sum.values())));
  const auto exact = random_floats(size, 3);
  ops::round_to_bf16(device, exact.data(), made.data(), size);
  CHECK((made.guard_intact() && same_bits(made.values(), rounded(exact))));
}

void check_activation(Device device, Activation act, const std::vector<float>& a, const std::vector<float>& b) {
  const auto size = static_cast<std::int64_t>(a.size());
  Bf16Array x(a), y(size), dx(b);
  Guarded y_expected(size), dx_expected(b);
  ops::activation_forward(device, act, x.data(), y.data(), size);
  ops::activation_forward(device, act, a.data(), y_expected.data(), size);
  ops::activation_backward(device, act, x.data(), dx.data(), dx.data(), size);  // in place
  ops::activation_backward(device, act, a.data(), dx_expected.data(), dx_expected.data(), size);
  CHECK((y.guard_intact() && same_bits(y.values(), rounded(y_expected.values()))));
  CHECK((dx.guard_intact() && same_bits(dx.values(), rounded(dx_expected.values()))));
  ops::activation_forward(device, act, x.data(), x.data(), size);  // in place
  CHECK((x.guard_intact() && same_bits(x.values(), y.values())));
}

}  // namespace

void check_bf16_activations_and_sums(Device device, const std::vector<std::int64_t>& sizes) {
  for (const std::int64_t size : sizes) {
    CAPTURE(size);
    const auto a = rounded(random_floats(size, 1, 6.0f)), b = rounded(random_floats(size, 2));
    check_sums(device, a, b);
    for (const auto act :
         {Activation::linear, Activation::relu, Activation::tanh, Activation::gelu, Activation::gelu_erf}) {
      CAPTURE(ops::activation_name(act));
      check_activation(device, act, a, b);
    }
  }
}

void check_bf16_norms(Device device, std::int64_t rows, const std::vector<std::int64_t>& widths) {
  for (const std::int64_t cols : widths) {
    for (const int how : {0, 1, 3}) {  // bit 0: a branch, bit 1: its sum is kept
      const bool summed = (how & 1) != 0, kept = (how & 2) != 0;
      CAPTURE(cols, summed, kept);
      const auto x = random_floats(rows * cols, 5), branch = random_floats(rows * cols, 6);
      const auto gamma = random_floats(cols, 7), beta = random_floats(cols, 8);
      const auto run = [&](Bf16* copy) {
        Guarded y(rows * cols), sum(rows * cols);
        ops::LayerNormForward a{.rows = rows, .cols = cols, .x = x.data()};
        a.branch = summed ? branch.data() : nullptr;
        a.gamma = gamma.data();
        a.beta = beta.data();
        a.y = y.data();
        a.y_bf16 = copy;
        a.sum = kept ? sum.data() : nullptr;
        ops::layer_norm(device, a);
        CHECK((y.guards_intact() && sum.guards_intact()));
        return y.values();
      };
      Bf16Array copy(rows * cols);
      const auto with = run(copy.data()), without = run(nullptr);
      CHECK(same_bits(with, without));
      CHECK((copy.guard_intact() && same_bits(copy.values(), rounded(with))));
    }
  }
}

void check_bf16_norm_gradients(Device device, std::int64_t rows, const std::vector<std::int64_t>& widths) {
  const std::vector<std::int64_t> offsets = {0, 2, rows};
  const std::vector<std::uint64_t> ordinals = {7, 1000};
  for (const std::int64_t cols : widths) {
    const auto dy = random_floats(rows * cols, 1), sum = random_floats(rows * cols, 2),
               before = random_floats(rows * cols, 3);
    const auto mean = random_floats(rows, 4), rstd = random_floats(rows, 5), gamma = random_floats(cols, 6);
    for (const int how : {0, 1, 2}) {  // without dx, dx =, dx +=
      CAPTURE(cols, how);
      const auto run = [&](float* dbranch, Bf16* dbranch_bf16) {
        Guarded dx(before);
        ops::LayerNormBackward a{.rows = rows, .cols = cols, .dy = dy.data(), .sum = sum.data(), .mean = mean.data()};
        a.rstd = rstd.data();
        a.gamma = gamma.data();
        a.dx = how == 0 ? nullptr : dx.data();
        a.add_to_dx = how == 2;
        a.dbranch = dbranch;
        a.dbranch_bf16 = dbranch_bf16;
        a.dropout = {.rate = 0.3f, .seed = 42, .layer = 3, .site = DropoutSite::global_feed_forward, .examples = 2};
        a.dropout.offsets = offsets.data();
        a.dropout.sample_ordinals = ordinals.data();
        ops::layer_norm_backward(device, a);
        CHECK(dx.guards_intact());
        return dx.values();
      };
      Guarded fp32(rows * cols);
      Bf16Array bf16(rows * cols);
      CHECK(same_bits(run(fp32.data(), nullptr), run(nullptr, bf16.data())));
      CHECK((bf16.guard_intact() && same_bits(bf16.values(), rounded(fp32.values()))));
    }
  }
}

void check_bf16_refusals(Device device) {
  const std::string beside_fp32 = "expected arrays in fp32 beside products in fp32, got bf16";
  Bf16Array x(std::int64_t{16}), y(std::int64_t{16});
  Guarded z(16);
  const auto w = random_floats(64, 1);
  ops::LinearForward a{.rows = 2, .in = 8, .out = 8, .x_bf16 = x.data(), .x_stride = 8, .weight = w.data()};
  a.y_bf16 = y.data();
  a.y_stride = 8;
  CHECK_THROWS_WITH(ops::linear(device, a), Contains(std::string(device_name(device)) + ": " + beside_fp32));
  ops::LinearBackward back{.rows = 2, .in = 8, .out = 8, .dz_bf16 = x.data(), .dz_stride = 8, .dbias = z.data()};
  CHECK_THROWS_WITH(ops::linear_backward(device, back), Contains(beside_fp32));
  a.compute = ComputeType::bf16;
  a.y_stride = 9;
  CHECK_THROWS_WITH(ops::linear(device, a), Contains("y in bf16: expected multiples of 8 columns, got 8 of rows 9"));
  a.y_stride = 8;
  a.y = z.data();
  CHECK_THROWS_WITH(ops::linear(device, a), Contains("y: expected fp32 or bf16, got both"));
  a.y = nullptr;
  a.pre_activation = z.data();
  a.activation = Activation::gelu;
  CHECK_THROWS_WITH(ops::linear(device, a), Contains("pre_activation: expected the type of y"));
}

}  // namespace etc::test
