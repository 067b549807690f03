// Operators of the CUDA backend on arrays of bf16, on the emulator.
#include "etc_core/ops/activation.h"
#include "etc_core/ops/determinism.h"
#include "tests/core/ops/bf16_arrays.h"
#include "tests/core/ops/cuda/both_backends.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;
using ops::Activation;
using ops::WeightLayout;

namespace {

// The third has rows of several of a strict product's slices' kind: more rows than a block of column sums.
const std::vector<GappedSizes> kSizes = {{1, 8, 8, 0}, {5, 16, 24, 8}, {130, 24, 16, 0}};
const std::vector<std::int64_t> kWidths = {2, 24, 256, 258, 770};

}  // namespace

TEST_CASE("emulated layers on arrays of bf16 give the rounded results of arrays of fp32", "[ops][cuda]") {
  register_both();
  for (const auto determinism : {ops::Determinism::run, ops::Determinism::strict}) {
    ops::set_determinism(determinism);
    for (const GappedSizes& s : kSizes) {
      for (const auto layout : {WeightLayout::in_out, WeightLayout::out_in}) {
        for (const auto act : {Activation::linear, Activation::gelu, Activation::relu, Activation::tanh}) {
          for (const int how : {0, 1, 2, 3}) {
            const LayerCase of{.device = Device::cuda,
                               .sizes = s,
                               .layout = layout,
                               .activation = act,
                               .kept = (how & 1) != 0 && act != Activation::linear,
                               .packed = (how & 2) != 0};
            CAPTURE(s.rows, s.in, s.out, static_cast<int>(layout), ops::activation_name(act), of.kept, of.packed);
            const LayerResult fp32 = run_layer(of, false, false), bf16 = run_layer(of, true, true);
            CHECK(same_bits(bf16.z, rounded(fp32.z)));
            // Activations in a separate pass read a z that is already rounded, with a relative error of 2^-9; z is at
            // most 24.
            const bool fused = act == Activation::linear || act == Activation::gelu;
            if (fused) CHECK(same_bits(bf16.y, rounded(fp32.y)));
            if (!fused) CHECK(near_all("y", bf16.y, doubles(fp32.y), 0x1p-8 * 6, 0x1p-8));
          }
        }
      }
    }
  }
  ops::set_determinism(ops::Determinism::run);
}

TEST_CASE("emulated gradients on arrays of bf16 are those of arrays of fp32, dx rounded", "[ops][cuda]") {
  register_both();
  for (const GappedSizes& s : kSizes) {
    for (const auto layout : {WeightLayout::in_out, WeightLayout::out_in}) {
      for (const bool add : {false, true}) {
        CAPTURE(s.rows, s.in, s.out, static_cast<int>(layout), add);
        const GradientCase of{.device = Device::cuda, .sizes = s, .layout = layout, .add = add};
        const GradientResult fp32 = run_gradients(of, {false, false, false}),
                             bf16 = run_gradients(of, {true, true, true});
        CHECK(same_bits(bf16.dx, rounded(fp32.dx)));
        CHECK(same_bits(bf16.dweight, fp32.dweight));
        CHECK(same_bits(bf16.dbias, fp32.dbias));
      }
    }
  }
}

TEST_CASE("emulated activations, sums and norms on arrays of bf16 round what they compute in fp32", "[ops][cuda]") {
  register_both();
  check_bf16_activations_and_sums(Device::cuda, {2, 510, 512, 514, 3000});
  check_bf16_norms(Device::cuda, 3, kWidths);
}

TEST_CASE("emulated norms give a branch its gradient rounded to bf16", "[ops][cuda]") {
  register_both();
  check_bf16_norm_gradients(Device::cuda, 5, kWidths);
}

TEST_CASE("the CUDA backend refuses arrays of bf16 where nobody reads them", "[ops][cuda]") {
  register_both();
  check_bf16_refusals(Device::cuda);
}
