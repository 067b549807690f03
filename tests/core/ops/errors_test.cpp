// Triggers every error message of the operators' checks.
#include "etc_core/ops/cross_entropy.h"
#include "etc_core/ops/dropout.h"
#include "etc_core/ops/embedding.h"
#include "etc_core/ops/layer_norm.h"
#include "etc_core/ops/linear.h"
#include "etc_core/ops/register.h"
#include "tests/support/catch.h"

using namespace etc;

namespace {

std::vector<float> g_numbers(64, 1.0f);

ops::LinearForward linear_args() {
  return {.rows = 2,
          .in = 3,
          .out = 4,
          .x = g_numbers.data(),
          .x_stride = 3,
          .weight = g_numbers.data(),
          .y = g_numbers.data() + 32,
          .y_stride = 4};
}

template <typename Change>
void require_linear(Change change, const char* message) {
  auto a = linear_args();
  change(a);
  REQUIRE_THROWS_WITH(ops::linear(Device::cpu, a), message);
}

}  // namespace

TEST_CASE("dense layers say what is wrong with their arguments", "[core][ops]") {
  ops::register_cpu_ops();
  using Args = ops::LinearForward;
  require_linear([](Args& a) { a.rows = -1; },
                 "linear: sizes: expected M >= 0, in >= 1, out >= 1, got [M=-1, in=3, out=4]");
  require_linear([](Args& a) { a.weight = nullptr; }, "linear: expected either weight or packed, got neither");
  require_linear([](Args& a) { a.x = nullptr; }, "linear: x is missing (null)");
  require_linear([](Args& a) { a.x_stride = 2; }, "linear: x_stride: expected at least 3 columns, got 2");
  require_linear([](Args& a) { a.y_stride = 3; }, "linear: y_stride: expected at least 4 columns, got 3");
  require_linear([](Args& a) { a.pre_activation = g_numbers.data(); },
                 "linear: pre_activation is y itself when the activation is linear: expected null");
  auto packed = ops::pack_weights(Device::cpu, {g_numbers.data(), 4, 3});
  require_linear([&](Args& a) { a.packed = &packed; }, "linear: expected either weight or packed, got both");
  const auto use_packed = [&](Args& a) {
    a.weight = nullptr;
    a.packed = &packed;
  };
  require_linear(use_packed, "linear: packed weights must match: expected [in=3, out=4], got [in=4, out=3]");
  packed = ops::pack_weights(Device::cpu, {g_numbers.data(), 3, 4});
  packed.device = Device::cuda;
  require_linear(use_packed, "linear: packed weights lie on cuda, the product was asked of cpu");
  REQUIRE_THROWS_WITH(ops::pack_weights(Device::cpu, {nullptr, 3, 4}), "pack_weights: weight is missing (null)");
  REQUIRE_THROWS_WITH(ops::linear(Device::cuda, linear_args()),
                      "linear: no cuda kernel in this build (configure with -DETC_CUDA=ON)");

  ops::LinearBackward b{.rows = 2, .in = 3, .out = 4};
  REQUIRE_THROWS_WITH(ops::linear_backward(Device::cpu, b), "linear_backward: dz is missing (null)");
  b.dz = g_numbers.data();
  b.dz_stride = 4;
  b.dx = g_numbers.data() + 32;
  b.dx_stride = 3;
  REQUIRE_THROWS_WITH(ops::linear_backward(Device::cpu, b),
                      "linear_backward: dx needs weight, which is missing (null)");
  b.dx = nullptr;
  b.dweight = g_numbers.data() + 32;
  REQUIRE_THROWS_WITH(ops::linear_backward(Device::cpu, b), "linear_backward: x is missing (null)");
}

TEST_CASE("dropout says what is wrong with its arguments", "[core][ops]") {
  ops::register_cpu_ops();
  std::vector<std::int64_t> offsets = {0, 1, 2};
  const std::vector<std::uint64_t> ordinals = {0, 1};
  ops::DropoutAdd a{.rows = 2, .cols = 3, .a = g_numbers.data(), .y = g_numbers.data() + 32};
  a.dropout.rate = 1;
  REQUIRE_THROWS_WITH(ops::dropout_add(Device::cpu, a),
                      "dropout_add: dropout.rate: expected at least 0 and below 1, got 1");
  a.dropout.rate = 0.5f;
  a.dropout.examples = 2;
  REQUIRE_THROWS_WITH(ops::dropout_add(Device::cpu, a),
                      "dropout_add: dropout needs offsets [B+1] and sample_ordinals [B], B=2, of which the offsets "
                      "are missing (null)");
  a.dropout.offsets = offsets.data();
  REQUIRE_THROWS_WITH(ops::dropout_add(Device::cpu, a),
                      "dropout_add: dropout needs offsets [B+1] and sample_ordinals [B], B=2, of which the ordinals "
                      "are missing (null)");
  a.dropout.sample_ordinals = ordinals.data();
  offsets = {0, 3, 2};
  REQUIRE_THROWS_WITH(ops::dropout_add(Device::cpu, a),
                      "dropout_add: dropout.offsets: expected non-decreasing, got 2 after 3 at 2");
  offsets = {0, 1, 3};
  REQUIRE_THROWS_WITH(ops::dropout_add(Device::cpu, a), "dropout_add: dropout.offsets: expected 0 … M=2, got 0 … 3");
  offsets = {0, 1, 2};
  a.a = nullptr;
  REQUIRE_THROWS_WITH(ops::dropout_add(Device::cpu, a), "dropout_add: a is missing (null)");
  a.cols = 0;
  REQUIRE_THROWS_WITH(ops::dropout_add(Device::cpu, a), "dropout_add: sizes: expected M >= 0, H >= 1, got [M=2, H=0]");
}

TEST_CASE("layer normalisation says what is wrong with its arguments", "[core][ops]") {
  ops::register_cpu_ops();
  float* numbers = g_numbers.data();
  ops::LayerNormForward f;
  f.rows = 2;
  REQUIRE_THROWS_WITH(ops::layer_norm(Device::cpu, f), "layer_norm: sizes: expected M >= 0, H >= 1, got [M=2, H=0]");
  f.cols = 3;
  f.sum = numbers;
  REQUIRE_THROWS_WITH(ops::layer_norm(Device::cpu, f),
                      "layer_norm: sum is x itself when there is no branch: expected null");
  f.sum = nullptr;
  f.mean = numbers;
  REQUIRE_THROWS_WITH(ops::layer_norm(Device::cpu, f),
                      "layer_norm: mean and rstd are saved together: expected both or neither, got mean alone");
  f.rstd = numbers;
  f.x = numbers;
  f.gamma = numbers;
  REQUIRE_THROWS_WITH(ops::layer_norm(Device::cpu, f), "layer_norm: beta is missing (null)");

  ops::LayerNormBackward b{.rows = 2, .cols = 3, .dgamma = numbers};
  REQUIRE_THROWS_WITH(ops::layer_norm_backward(Device::cpu, b),
                      "layer_norm_backward: dgamma and dbeta are computed together: expected both or neither, got "
                      "dgamma alone");
  b.dbeta = numbers;
  b.dx = numbers;
  b.dbranch = numbers;
  REQUIRE_THROWS_WITH(ops::layer_norm_backward(Device::cpu, b),
                      "layer_norm_backward: dbranch and dx must not be the same memory");
  b.dbranch = nullptr;
  REQUIRE_THROWS_WITH(ops::layer_norm_backward(Device::cpu, b), "layer_norm_backward: dy is missing (null)");
}

TEST_CASE("embeddings say what is wrong with their arguments", "[core][ops]") {
  ops::register_cpu_ops();
  const std::vector<std::int64_t> offsets = {0, 3};
  ops::EmbeddingForward f;
  f.rows = 2;
  REQUIRE_THROWS_WITH(ops::embedding(Device::cpu, f), "embedding: sizes: expected M >= 0, H >= 1, got [M=2, H=0]");
  f.cols = 3;
  REQUIRE_THROWS_WITH(ops::embedding(Device::cpu, f), "embedding: e is missing (null)");
  f.e = g_numbers.data();
  f.tokens = {g_numbers.data(), 4, nullptr, "token_ids"};
  REQUIRE_THROWS_WITH(ops::embedding(Device::cpu, f), "embedding: token_ids are missing (null)");
  f.tokens.table = nullptr;
  f.examples = 1;
  f.offsets = offsets.data();
  REQUIRE_THROWS_WITH(ops::embedding(Device::cpu, f), "embedding: offsets: expected the last to be M=2, got 3");

  ops::EmbeddingBackward b{.rows = 2, .cols = 3, .limit = -1};
  REQUIRE_THROWS_WITH(ops::embedding_backward(Device::cpu, b),
                      "embedding_backward: sizes: expected M >= 0, H >= 1, limit >= 0, got [M=2, H=3, limit=-1]");
  b.limit = 4;
  b.de = g_numbers.data();
  REQUIRE_THROWS_WITH(ops::embedding_backward(Device::cpu, b), "embedding_backward: ids are missing (null)");
}

TEST_CASE("cross-entropy says what is wrong with its arguments", "[core][ops]") {
  ops::register_cpu_ops();
  std::vector<std::int64_t> offsets = {0, 3, 2};
  std::vector<std::int32_t> targets = {0, 0};
  std::vector<std::uint8_t> counted = {1, 1, 0};
  std::vector<double> losses(2);
  ops::CrossEntropy a;
  const auto require = [&](const char* message) { REQUIRE_THROWS_WITH(ops::cross_entropy(Device::cpu, a), message); };
  a.groups = -1;
  require("softmax_cross_entropy: groups: expected at least 0, got -1");
  a.groups = 2;
  a.stride = 0;
  require("softmax_cross_entropy: stride: expected at least 1, got 0");
  a.stride = 1;
  a.label_smoothing = 1;
  require("softmax_cross_entropy: label_smoothing: expected at least 0 and below 1, got 1");
  a.label_smoothing = 0.5f;
  require("softmax_cross_entropy: expected either target_index or target, got neither");
  a.target = g_numbers.data();
  require(
      "softmax_cross_entropy: label_smoothing belongs to target_index: expected 0 with a given distribution, got "
      "0.5");
  a.target = nullptr;
  a.target_index = targets.data();
  require("softmax_cross_entropy: offsets are missing (null)");
  a.offsets = offsets.data();
  a.losses = losses.data();
  require("softmax_cross_entropy: offsets: expected non-decreasing, got 2 after 3 at 2");
  offsets = {0, 3, 3};
  require("softmax_cross_entropy: logits are missing (null)");
  a.logits = g_numbers.data();
  targets = {3, -1};
  require("softmax_cross_entropy: group 0: target index: expected -1 (none) or 0 to 2, got 3");
  targets = {2, -1};
  a.counted = counted.data();
  require("softmax_cross_entropy: group 0: target index 2 is not a counted logit");
}
