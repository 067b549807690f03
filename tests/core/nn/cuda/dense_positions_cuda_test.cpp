// Every position method and kind of attention of dense encoders on the CUDA backend, with kernels run by the emulator:
// states and gradients against the CPU's.
#include <cmath>

#include "etc_core/base/json.h"
#include "etc_core/nn/cuda/register_cuda.h"
#include "tests/core/nn/small_dense.h"
#include "tests/support/catch.h"
#include "tests/support/simt/emulator.h"
#include "tests/support/worst.h"

namespace etc {
namespace {

using Attention = DenseConfig::Attention;
using Method = PositionConfig::Method;
using test::DenseGradients;
using test::sequences;
using test::SmallDense;
using test::training;

DenseConfig two_layers() {
  DenseConfig config = test::small_dense();
  config.num_hidden_layers = 2;
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.1;
  return config;
}

DenseConfig with_method(Method method, PositionConfig::Sharing sharing = PositionConfig::Sharing::layer_head) {
  DenseConfig config = two_layers();
  config.max_absolute_position_embeddings = 0;
  config.relative_positions = method;
  config.relative_sharing = sharing;
  config.relative_clip = 5;
  config.relative_buckets = 8;
  config.relative_max_distance = 12;
  config.relative_init = PositionConfig::TableInit::normal;
  return config;
}

DenseConfig with_attention(Attention attention) {
  DenseConfig config = two_layers();
  config.attention = attention;
  if (attention == Attention::window) config.local_radius = 3;
  if (attention == Attention::bigbird) config.bigbird_block_size = 2;
  if (attention == Attention::performer) {
    config.performer_features = 20;
    config.attention_probs_dropout_prob = 0;
    config.use_residual_attention = false;
  }
  return config;
}

// Norm of the difference divided by the norm of the expected gradient, for the gradient with the largest deviation.
double worst_difference(const DenseGradients& got, const DenseGradients& expected) {
  REQUIRE(got.size() == expected.size());
  double all = 0, worst = 0;
  for (const auto& [name, values] : expected) {
    for (const float value : values) all += std::pow(value, 2);
  }
  for (const auto& [name, values] : expected) {
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      difference += std::pow(1.0 * got.at(name)[i] - values[i], 2);
      norm += std::pow(values[i], 2);
    }
    // A gradient that is 0 except for rounding, such as that of the keys' bias, is compared with the norm of all
    // gradients.
    test::keep_worst(worst, std::sqrt(difference / std::max(norm, 1e-4 * all)));
  }
  return worst;
}

void check_as_cpu(const DenseConfig& config, const EncoderInput& input) {
  register_cuda_backend();
  CAPTURE(json_line(config.to_json()));
  SmallDense host(config), device(config);
  device.parameters.to(Device::cuda);
  const std::int64_t before = simt::emulator_counts().launches;
  CHECK(worst_difference(states_of(device, input), states_of(host, input)) < 1e-5);
  CHECK(simt::emulator_counts().launches > before);
  const ForwardOptions fp32 = training(ComputeType::fp32);
  const DenseGradients expected = host.gradients(input, fp32), got = device.gradients(input, fp32);
  CHECK(worst_difference(got, expected) < 1e-4);
  CHECK(device.gradients(input, fp32) == got);
}

TEST_CASE("emulated dense encoders with every position method compute the CPU's states and gradients", "[nn][cuda]") {
  for (const Method method :
       {Method::shaw, Method::shaw_values, Method::t5, Method::transformer_xl, Method::huang1, Method::huang2,
        Method::huang3, Method::huang4, Method::nezha_index, Method::nezha_signed}) {
    check_as_cpu(with_method(method), sequences({7, 4, 1}));
  }
}

TEST_CASE("emulated dense encoders share tables among heads and layers as the CPU does", "[nn][cuda]") {
  using Sharing = PositionConfig::Sharing;
  check_as_cpu(with_method(Method::shaw, Sharing::layer), sequences({7, 4}));
  check_as_cpu(with_method(Method::huang4, Sharing::model), sequences({7, 4}));
}

TEST_CASE("emulated dense encoders share Transformer-XL's u and v, and add sinusoids, as the CPU does", "[nn][cuda]") {
  check_as_cpu(with_method(Method::transformer_xl, PositionConfig::Sharing::model), sequences({7, 4}));
  DenseConfig config = with_method(Method::none);
  config.max_absolute_position_embeddings = 64;
  config.absolute_positions = DenseConfig::AbsolutePositions::halves_t2t;
  check_as_cpu(config, sequences({7, 4}));
}

TEST_CASE("emulated dense encoders take positions of more than 256 distances", "[nn][cuda]") {
  for (const Method method : {Method::shaw, Method::transformer_xl}) {
    DenseConfig config = with_method(method);
    config.relative_clip = 130;
    check_as_cpu(config, sequences({5}));
  }
}

TEST_CASE("emulated dense encoders keep Transformer-XL's tables, and make them anew where the weights have gone",
          "[nn][cuda]") {
  register_cuda_backend();
  const EncoderInput input = sequences({7, 4, 1});
  SmallDense model(with_method(Method::transformer_xl));
  const DenseGradients expected = states_of(model, input);  // the host's tables are cached now
  model.parameters.to(Device::cuda);
  const DenseGradients first = states_of(model, input);
  CHECK(worst_difference(first, expected) < 1e-5);
  CHECK(states_of(model, input) == first);
  model.encoder.release_kernels();
  CHECK(states_of(model, input) == first);
}

TEST_CASE("emulated dense encoders with every kind of attention compute the CPU's states and gradients", "[nn][cuda]") {
  for (const Attention kind : {Attention::full, Attention::window, Attention::bigbird, Attention::performer}) {
    check_as_cpu(with_attention(kind), sequences({19, 4, 1}));
  }
  DenseConfig carried = with_attention(Attention::performer);
  carried.use_residual_attention = carried.use_running_mean = true;
  check_as_cpu(carried, sequences({19, 4, 1}));
  for (const Method method : {Method::none, Method::shaw_values}) {
    DenseConfig own = with_method(method);
    own.attention = Attention::bigbird;
    own.bigbird_block_size = 2;
    for (const bool per_head : {true, false}) {
      own.bigbird_per_head = per_head;
      check_as_cpu(own, sequences({19, 4}));
    }
  }
}

TEST_CASE("emulated dense encoders train in bf16 with position methods and linear attention", "[nn][cuda]") {
  register_cuda_backend();
  const EncoderInput input = sequences({7, 4});
  std::vector<DenseConfig> configs = {with_attention(Attention::performer), with_attention(Attention::bigbird)};
  for (const Method method :
       {Method::shaw, Method::shaw_values, Method::t5, Method::transformer_xl, Method::huang1, Method::huang2,
        Method::huang3, Method::huang4, Method::nezha_index, Method::nezha_signed, Method::etc}) {
    configs.push_back(with_method(method));
  }
  for (const DenseConfig& config : configs) {
    CAPTURE(json_line(config.to_json()));
    SmallDense host(config), device(config);
    device.parameters.to(Device::cuda);
    const DenseGradients exact = host.gradients(input, training(ComputeType::fp32));
    const DenseGradients rounded = device.gradients(input, training(ComputeType::bf16));
    CHECK(worst_difference(rounded, exact) < 0.3);
    CHECK(worst_difference(rounded, exact) > 1e-4);
  }
}

}  // namespace
}  // namespace etc
