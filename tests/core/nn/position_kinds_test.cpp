// Every position method with every kind of attention: compatible combinations run in all number types and can be
// trained.
#include <cmath>

#include "etc_core/base/cpu_features.h"
#include "etc_core/base/json.h"
#include "tests/core/nn/small_dense.h"
#include "tests/support/catch.h"

namespace etc::test {
namespace {

using Catch::Matchers::Contains;
using Attention = DenseConfig::Attention;
using Method = PositionConfig::Method;

constexpr Attention kKinds[] = {Attention::full, Attention::window, Attention::bigbird, Attention::performer};
DenseConfig combined(Method method, Attention attention) {
  DenseConfig config = small_dense();
  config.max_absolute_position_embeddings = method == Method::none ? 64 : 0;
  config.initializer_range = 0.2;
  config.use_residual_attention = attention != Attention::performer;
  config.relative_positions = method;
  config.relative_clip = 6;
  config.attention = attention;
  if (attention == Attention::window) config.local_radius = 5;
  if (attention == Attention::bigbird) {
    config.bigbird_block_size = 4;
    config.bigbird_random_blocks = 1;
  }
  if (attention == Attention::performer) config.performer_features = 48;
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
  return config;
}

// Calls body(config) for every compatible pair; validation rejects the others.
template <typename Body>
void for_every_pair(const Body& body) {
  for (const Method method : kPositionMethods) {
    for (const Attention attention : kKinds) {
      const DenseConfig config = combined(method, attention);
      CAPTURE(json_line(config.to_json()));
      if (attention == Attention::performer && method != Method::none) {
        CHECK_THROWS_WITH(config.validate(), Contains("relative_positions: expected none with attention performer"));
      } else {
        body(config);
      }
    }
  }
}

// |x - y| / |y|, Euclidean.
double relative_difference(const Tensor& x, const Tensor& y) {
  double difference = 0, norm = 0;
  for (std::int64_t i = 0; i < y.size(); ++i) {
    difference += std::pow(1.0 * x.data()[i] - y.data()[i], 2);
    norm += std::pow(1.0 * y.data()[i], 2);
  }
  return std::sqrt(difference / norm);
}

// Of all gradients together.
double relative_difference(const DenseGradients& x, const DenseGradients& y) {
  double difference = 0, norm = 0;
  REQUIRE(x.size() == y.size());
  for (const auto& [name, values] : y) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      difference += std::pow(1.0 * x.at(name)[i] - values[i], 2);
      norm += std::pow(1.0 * values[i], 2);
    }
  }
  return std::sqrt(difference / norm);
}

TEST_CASE("every position method runs in bf16 and int8 with every kind of attention it goes with", "[nn]") {
  const EncoderInput input = sequences({33, 40, 3});
  for_every_pair([&](const DenseConfig& config) {
    const Tensor exact = SmallDense(config).states(input);
    for (const auto& [compute, most] : {std::pair(ComputeType::bf16, 0.05), {ComputeType::int8, 0.15}}) {
      if (!cpu_offers(compute)) continue;
      SmallDense packed(config);
      packed.encoder.release_kernels(compute);
      const double off = relative_difference(packed.states(input), exact);
      CHECK(off > 1e-4);
      CHECK(off < most);
    }
  });
}

TEST_CASE("every position method trains in bf16 with every kind of attention it goes with", "[nn]") {
  const EncoderInput input = sequences({33, 3});
  ForwardOptions options;
  options.training = true;
  for_every_pair([&](DenseConfig config) {
    const DenseGradients exact = SmallDense(config).gradients(input, options);
    config.grad_checkpointing_period = 1;
    CHECK(SmallDense(config).gradients(input, options) == exact);
    if (!cpu_offers(ComputeType::bf16)) return;
    ForwardOptions in_bf16 = options;
    in_bf16.compute = ComputeType::bf16;
    const DenseGradients rounded = SmallDense(config).gradients(input, in_bf16);
    CHECK(relative_difference(rounded, exact) > 1e-4);
    CHECK(relative_difference(rounded, exact) < 0.1);
    CHECK(SmallDense(config).gradients(input, in_bf16) == rounded);
  });
}

}  // namespace
}  // namespace etc::test
