// Operators of the CUDA backend on arrays of bf16, on the emulator: what the same operator makes of the same numbers in
// fp32, rounded.
#include <cmath>

#include "etc_core/base/bf16.h"
#include "etc_core/base/error.h"
#include "etc_core/ops/activation.h"
#include "etc_core/ops/cuda/register_cuda.h"
#include "etc_core/ops/determinism.h"
#include "etc_core/ops/elementwise.h"
#include "etc_core/ops/layer_norm.h"
#include "etc_core/ops/linear.h"
#include "etc_core/ops/register.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;
using Catch::Matchers::Contains;
using ops::Activation;
using ops::WeightLayout;

namespace {

// An array of bf16 with a zone behind it that an operator must leave alone.
class Bf16Array {
 public:
  explicit Bf16Array(const std::vector<float>& values) : size_(values.size()) {
    for (const float value : values) all_.push_back({bf16_from_float(value)});
    all_.resize(size_ + kGuard, Bf16{kMark});
  }
  explicit Bf16Array(std::int64_t size) : Bf16Array(std::vector<float>(static_cast<std::size_t>(size))) {}
  Bf16* data() { return all_.data(); }
  std::vector<float> values() const {
    std::vector<float> result;
    for (std::size_t i = 0; i < size_; ++i) result.push_back(float_from_bf16(all_[i].bits));
    return result;
  }
  bool guard_intact() const {
    for (std::size_t i = size_; i < all_.size(); ++i) {
      if (all_[i].bits != kMark) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kGuard = 64;
  static constexpr std::uint16_t kMark = 0x7abc;
  std::size_t size_;
  std::vector<Bf16> all_;
};

std::vector<float> rounded(std::vector<float> values) {
  for (float& value : values) value = float_from_bf16(bf16_from_float(value));
  return values;
}

std::vector<double> doubles(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

struct Sizes {
  std::int64_t rows, in, out, gap;
};
// The third has rows of several of a strict product's slices' kind: more rows than a block of column sums.
const std::vector<Sizes> kSizes = {{1, 8, 8, 0}, {5, 16, 24, 8}, {130, 24, 16, 0}};

void register_both() {
  ops::register_cpu_ops();
  ops::register_cuda_ops();
}

// y and z of a layer whose arrays are bf16, or fp32 of the same numbers.
std::pair<std::vector<float>, std::vector<float>> layer(const Sizes& s, WeightLayout layout, Activation act, bool kept,
                                                        bool packed, bool bf16) {
  const auto x = rounded(random_floats(s.rows * (s.in + s.gap), 1)), w = random_floats(s.in * s.out, 2);
  const auto bias = rounded(random_floats(s.out, 3));
  // Only activations of a pass of their own want y without gaps.
  const std::int64_t y_stride = act == Activation::linear ? s.out + s.gap : s.out;
  const auto matrix = packed ? ops::pack_weights(Device::cuda, {w.data(), s.in, s.out, layout}, ComputeType::bf16)
                             : ops::PackedWeights();
  ops::LinearForward a{.rows = s.rows, .in = s.in, .out = s.out, .x_stride = s.in + s.gap};
  a.layout = layout;
  a.compute = ComputeType::bf16;
  if (packed) {
    a.packed = &matrix;
  } else {
    a.weight = w.data();
  }
  a.bias = bias.data();
  a.activation = act;
  a.y_stride = y_stride;
  Bf16Array x_bf16(x), y_bf16(s.rows * y_stride), z_bf16(s.rows * s.out);
  Guarded y(s.rows * y_stride), z(s.rows * s.out);
  if (bf16) {
    a.x_bf16 = x_bf16.data();
    a.y_bf16 = y_bf16.data();
    if (kept) a.pre_activation_bf16 = z_bf16.data();
  } else {
    a.x = x.data();
    a.y = y.data();
    if (kept) a.pre_activation = z.data();
  }
  ops::linear(Device::cuda, a);
  CHECK((y_bf16.guard_intact() && z_bf16.guard_intact() && y.guards_intact() && z.guards_intact()));
  return bf16 ? std::pair(y_bf16.values(), z_bf16.values()) : std::pair(y.values(), z.values());
}

struct Gradients {
  std::vector<float> dx, dweight, dbias;
};

Gradients gradients(const Sizes& s, WeightLayout layout, bool add, bool bf16) {
  const auto x = rounded(random_floats(s.rows * (s.in + s.gap), 4)), w = random_floats(s.in * s.out, 5);
  const auto dz = rounded(random_floats(s.rows * (s.out + s.gap), 6));
  const auto before = rounded(random_floats(s.rows * (s.in + s.gap), 7));
  Bf16Array x_bf16(x), dz_bf16(dz), dx_bf16(before);
  Guarded dx(before), dweight(s.in * s.out, 0.25f), dbias(s.out, -1.0f);
  ops::LinearBackward a{.rows = s.rows,
                        .in = s.in,
                        .out = s.out,
                        .dz_stride = s.out + s.gap,
                        .x_stride = s.in + s.gap,
                        .weight = w.data(),
                        .layout = layout,
                        .compute = ComputeType::bf16,
                        .dx_stride = s.in + s.gap,
                        .add_to_dx = add,
                        .dweight = dweight.data(),
                        .dbias = dbias.data()};
  if (bf16) {
    a.dz_bf16 = dz_bf16.data();
    a.x_bf16 = x_bf16.data();
    a.dx_bf16 = dx_bf16.data();
  } else {
    a.dz = dz.data();
    a.x = x.data();
    a.dx = dx.data();
  }
  ops::linear_backward(Device::cuda, a);
  CHECK((dx_bf16.guard_intact() && dx.guards_intact() && dweight.guards_intact() && dbias.guards_intact()));
  return {bf16 ? dx_bf16.values() : dx.values(), dweight.values(), dbias.values()};
}

}  // namespace

TEST_CASE("emulated layers on arrays of bf16 give the rounded results of arrays of fp32", "[ops][cuda]") {
  register_both();
  for (const auto determinism : {ops::Determinism::run, ops::Determinism::strict}) {
    ops::set_determinism(determinism);
    for (const Sizes& s : kSizes) {
      for (const auto layout : {WeightLayout::in_out, WeightLayout::out_in}) {
        for (const auto act : {Activation::linear, Activation::gelu, Activation::relu, Activation::tanh}) {
          for (const int how : {0, 1, 2, 3}) {
            const bool kept = (how & 1) != 0 && act != Activation::linear, packed = (how & 2) != 0;
            CAPTURE(s.rows, s.in, s.out, static_cast<int>(layout), ops::activation_name(act), kept, packed);
            const auto [y, z] = layer(s, layout, act, kept, packed, false);
            const auto [y_bf16, z_bf16] = layer(s, layout, act, kept, packed, true);
            CHECK(same_bits(z_bf16, rounded(z)));
            // Activations of a pass of their own read a z that is rounded already: by 2^-9 of itself, at most 24.
            const bool fused = act == Activation::linear || act == Activation::gelu;
            if (fused) CHECK(same_bits(y_bf16, rounded(y)));
            if (!fused) CHECK(near_all("y", y_bf16, doubles(y), 0x1p-8 * 6, 0x1p-8));
          }
        }
      }
    }
  }
  ops::set_determinism(ops::Determinism::run);
}

TEST_CASE("emulated gradients on arrays of bf16 are those of arrays of fp32, dx rounded", "[ops][cuda]") {
  register_both();
  for (const Sizes& s : kSizes) {
    for (const auto layout : {WeightLayout::in_out, WeightLayout::out_in}) {
      for (const bool add : {false, true}) {
        CAPTURE(s.rows, s.in, s.out, static_cast<int>(layout), add);
        const Gradients fp32 = gradients(s, layout, add, false), bf16 = gradients(s, layout, add, true);
        CHECK(same_bits(bf16.dx, rounded(fp32.dx)));
        CHECK(same_bits(bf16.dweight, fp32.dweight));
        CHECK(same_bits(bf16.dbias, fp32.dbias));
      }
    }
  }
}

TEST_CASE("emulated activations, sums and norms on arrays of bf16 round what they compute in fp32", "[ops][cuda]") {
  register_both();
  for (const std::int64_t size : {2, 510, 512, 514, 3000}) {
    const auto a = rounded(random_floats(size, 1, 6.0f)), b = rounded(random_floats(size, 2));
    Bf16Array a_bf16(a), b_bf16(b), sum(size), made(size);
    ops::add(Device::cuda, a_bf16.data(), b_bf16.data(), sum.data(), size);
    Guarded expected(size);
    ops::add(Device::cuda, a.data(), b.data(), expected.data(), size);
    CHECK((sum.guard_intact() && same_bits(sum.values(), rounded(expected.values()))));
    const auto exact = random_floats(size, 3);
    ops::round_to_bf16(Device::cuda, exact.data(), made.data(), size);
    CHECK((made.guard_intact() && same_bits(made.values(), rounded(exact))));
    for (const auto act :
         {Activation::linear, Activation::relu, Activation::tanh, Activation::gelu, Activation::gelu_erf}) {
      CAPTURE(size, ops::activation_name(act));
      Bf16Array y(size), dx(b);
      Guarded y_expected(size), dx_expected(b);
      ops::activation_forward(Device::cuda, act, a_bf16.data(), y.data(), size);
      ops::activation_forward(Device::cuda, act, a.data(), y_expected.data(), size);
      ops::activation_backward(Device::cuda, act, a_bf16.data(), dx.data(), dx.data(), size);  // in place
      ops::activation_backward(Device::cuda, act, a.data(), dx_expected.data(), dx_expected.data(), size);
      CHECK((y.guard_intact() && same_bits(y.values(), rounded(y_expected.values()))));
      CHECK((dx.guard_intact() && same_bits(dx.values(), rounded(dx_expected.values()))));
    }
  }
  for (const std::int64_t cols : {2, 24, 256, 258, 770}) {
    for (const int how : {0, 1, 2, 3}) {  // bit 0: a branch, bit 1: its sum is kept
      constexpr std::int64_t kRows = 3;
      const bool summed = (how & 1) != 0, kept = how == 3;
      CAPTURE(cols, how);
      const auto x = random_floats(kRows * cols, 5), branch = random_floats(kRows * cols, 6);
      const auto gamma = random_floats(cols, 7), beta = random_floats(cols, 8);
      const auto run = [&](Bf16* copy) {
        Guarded y(kRows * cols), sum(kRows * cols);
        ops::LayerNormForward a{.rows = kRows, .cols = cols, .x = x.data()};
        a.branch = summed ? branch.data() : nullptr;
        a.gamma = gamma.data();
        a.beta = beta.data();
        a.y = y.data();
        a.y_bf16 = copy;
        a.sum = kept ? sum.data() : nullptr;
        ops::layer_norm(Device::cuda, a);
        CHECK((y.guards_intact() && sum.guards_intact()));
        return y.values();
      };
      Bf16Array copy(kRows * cols);
      const auto with = run(copy.data()), without = run(nullptr);
      CHECK(same_bits(with, without));
      CHECK((copy.guard_intact() && same_bits(copy.values(), rounded(with))));
    }
  }
}

TEST_CASE("emulated norms give a branch its gradient rounded to bf16", "[ops][cuda]") {
  register_both();
  const std::vector<std::int64_t> offsets = {0, 2, 5};
  const std::vector<std::uint64_t> ordinals = {7, 1000};
  for (const std::int64_t cols : {2, 24, 256, 258, 770}) {
    for (const bool add : {false, true}) {
      constexpr std::int64_t kRows = 5;
      CAPTURE(cols, add);
      const auto dy = random_floats(kRows * cols, 1), sum = random_floats(kRows * cols, 2),
                 before = random_floats(kRows * cols, 3);
      const auto mean = random_floats(kRows, 4), rstd = random_floats(kRows, 5), gamma = random_floats(cols, 6);
      const auto run = [&](float* dbranch, Bf16* dbranch_bf16) {
        Guarded dx(before);
        ops::LayerNormBackward a{.rows = kRows, .cols = cols, .dy = dy.data(), .sum = sum.data(), .mean = mean.data()};
        a.rstd = rstd.data();
        a.gamma = gamma.data();
        a.dx = dx.data();
        a.add_to_dx = add;
        a.dbranch = dbranch;
        a.dbranch_bf16 = dbranch_bf16;
        a.dropout = {.rate = 0.3f, .seed = 42, .layer = 3, .site = DropoutSite::global_feed_forward, .examples = 2};
        a.dropout.offsets = offsets.data();
        a.dropout.sample_ordinals = ordinals.data();
        ops::layer_norm_backward(Device::cuda, a);
        CHECK(dx.guards_intact());
        return dx.values();
      };
      Guarded fp32(kRows * cols);
      Bf16Array bf16(kRows * cols);
      CHECK(same_bits(run(fp32.data(), nullptr), run(nullptr, bf16.data())));
      CHECK((bf16.guard_intact() && same_bits(bf16.values(), rounded(fp32.values()))));
    }
  }
}

TEST_CASE("arrays of bf16 are refused where nobody reads them", "[ops]") {
  register_both();
  Bf16Array x(std::int64_t{16}), y(std::int64_t{16});
  const auto w = random_floats(64, 1);
  ops::LinearForward a{.rows = 2, .in = 8, .out = 8, .x_bf16 = x.data(), .x_stride = 8, .weight = w.data()};
  a.y_bf16 = y.data();
  a.y_stride = 8;
  CHECK_THROWS_WITH(ops::linear(Device::cuda, a),
                    Contains("expected arrays in fp32 beside products in fp32, got bf16"));
  a.compute = ComputeType::bf16;
  CHECK_THROWS_WITH(ops::linear(Device::cpu, a), Contains("cpu: expected arrays in fp32 beside products in bf16"));
  a.y_stride = 9;
  CHECK_THROWS_WITH(ops::linear(Device::cuda, a),
                    Contains("y in bf16: expected multiples of 8 columns, got 8 of rows 9"));
  a.y_stride = 8;
  Guarded z(16);
  a.y = z.data();
  CHECK_THROWS_WITH(ops::linear(Device::cuda, a), Contains("y: expected fp32 or bf16, got both"));
  a.y = nullptr;
  a.pre_activation = z.data();
  a.activation = Activation::gelu;
  CHECK_THROWS_WITH(ops::linear(Device::cuda, a), Contains("pre_activation: expected the type of y"));
}
