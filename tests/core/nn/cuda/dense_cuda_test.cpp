// Dense encoders on the CUDA backend, with kernels run by the emulator, against the CPU's results.
#include <cmath>

#include "etc_core/base/json.h"
#include "etc_core/nn/cuda/register_cuda.h"
#include "tests/core/nn/small_dense.h"
#include "tests/support/catch.h"
#include "tests/support/simt/emulator.h"

namespace etc {
namespace {

using test::DenseGradients;
using test::sequences;
using test::SmallDense;
using test::training;

DenseConfig few_layers(DenseConfig config) {
  config.num_hidden_layers = 2;
  if (!config.sublayer_order.empty()) config.sublayer_order = "ssff";
  return config;
}

// Norm of the difference divided by the norm of the expected gradients, over all gradients.
double relative_difference(const DenseGradients& got, const DenseGradients& expected) {
  double difference = 0, norm = 0;
  REQUIRE(got.size() == expected.size());
  for (const auto& [name, values] : expected) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      difference += std::pow(1.0 * got.at(name)[i] - values[i], 2);
      norm += std::pow(values[i], 2);
    }
  }
  return std::sqrt(difference / norm);
}

TEST_CASE("emulated dense encoders of every kind compute the CPU's states and gradients", "[nn][cuda]") {
  register_cuda_backend();
  for (const DenseConfig& variant : test::dense_variants()) {
    const DenseConfig config = few_layers(variant);
    CAPTURE(json_line(config.to_json()));
    const EncoderInput input = sequences({7, 4, 1});
    SmallDense host(config), device(config);
    device.parameters.to(Device::cuda);
    const std::int64_t before = simt::emulator_counts().launches;
    CHECK(relative_difference(states_of(device, input), states_of(host, input)) < 1e-5);
    CHECK(simt::emulator_counts().launches > before);
    const ForwardOptions fp32 = training(ComputeType::fp32);
    CHECK(relative_difference(device.gradients(input, fp32), host.gradients(input, fp32)) < 1e-5);
  }
}

// Every kind unchanged, and with heads and layers of whole tensor-core tiles, whose arrays are kept in bf16 where
// possible.
std::vector<DenseConfig> variants_in_bf16() {
  std::vector<DenseConfig> all;
  for (const DenseConfig& variant : test::dense_variants()) {
    DenseConfig config = few_layers(variant);
    all.push_back(config);
    config.hidden_size = 32;
    config.num_attention_heads = 2;
    config.intermediate_size = 48;
    all.push_back(config);
  }
  return all;
}

TEST_CASE("emulated dense encoders in bf16 stay near the CPU's fp32, packed and in training", "[nn][cuda]") {
  register_cuda_backend();
  for (const DenseConfig& config : variants_in_bf16()) {
    CAPTURE(json_line(config.to_json()));
    const EncoderInput input = sequences({7, 4, 1});
    SmallDense host(config), device(config);
    device.parameters.to(Device::cuda);
    const DenseGradients exact = host.gradients(input, training(ComputeType::fp32));
    const DenseGradients rounded = device.gradients(input, training(ComputeType::bf16));
    CHECK(device.gradients(input, training(ComputeType::bf16)) == rounded);
    CHECK(relative_difference(rounded, exact) < 0.1);
    CHECK(relative_difference(rounded, exact) > 1e-4);
    device.encoder.release_kernels(ComputeType::bf16);
    CHECK(relative_difference(states_of(device, input), states_of(host, input)) < 0.1);
  }
}

}  // namespace
}  // namespace etc
