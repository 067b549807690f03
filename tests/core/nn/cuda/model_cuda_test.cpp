// The whole model on the CUDA backend, with kernels run by the emulator, against the CPU's results.
#include <map>
#include <utility>

#include "etc_core/checkpoint/tensor_file.h"
#include "etc_core/nn/cuda/register_cuda.h"
#include "etc_core/nn/etc_config.h"
#include "etc_core/ops/determinism.h"
#include "etc_core/optim/accumulator.h"
#include "etc_core/optim/optimizer.h"
#include "tests/core/nn/tiny_model.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/simt/emulator.h"
#include "tests/support/worst.h"

using namespace etc;
using namespace etc::test;

namespace {

// The tiny model on a device.
TinyModel& on(Device device, TinyModel& model) {
  if (device == Device::cuda) register_cuda_backend();
  model.parameters.to(device);
  return model;
}

// Heads and layers of whole tensor-core tiles: arrays that only products and attention read are then kept in bf16 if
// products are bf16.
EtcConfig tensor_core_config() {
  EtcConfig config = tiny_config();
  config.num_hidden_layers = 2;
  config.hidden_size = 32;
  config.num_attention_heads = 2;
  config.intermediate_size = 48;
  config.use_residual_attention = true;
  config.hidden_dropout_prob = 0.2;
  config.attention_probs_dropout_prob = 0.3;
  config.grad_checkpointing_period = 1;
  return config;
}

// Each variant enables features that the others lack.
std::vector<EtcConfig> variants() {
  std::vector<EtcConfig> list;
  EtcConfig config = tiny_config();
  config.num_hidden_layers = 2;
  list.push_back(config);
  config.use_residual_attention = true;
  config.max_absolute_position_embeddings = 16;
  config.embedding_size = 5;
  config.att_size_per_head = 3;
  config.share_feed_forward_params = false;
  config.grad_checkpointing_period = 1;
  config.hidden_dropout_prob = 0.2;
  config.attention_probs_dropout_prob = 0.3;
  list.push_back(config);
  config.use_running_mean = true;
  config.use_pre_activation_order = true;
  config.share_kv_projections = true;
  config.residual_attention_types = {"l2g", "g2g"};
  config.intermediate_size = 15;  // the library does not fuse gelu then
  config.hidden_act = "relu";
  list.push_back(config);
  list.push_back(tensor_core_config());
  return list;
}

// Roundings of fp32 through two layers: values are of order 1 and sums at most a few dozen terms long.
constexpr double kTolerance = 1e-5;

// Two models of equal weights, and the training batch for both.
struct Twins {
  EncoderInput input;
  ForwardOptions options;
  TinyModel host, device;

  explicit Twins(const EtcConfig& config)
      : input(tiny_input(config, {11, 4, 1}, {3, 2, 1})), host(config), device(config) {
    options.training = true;
    options.seed = 17;
  }
};

}  // namespace

TEST_CASE("the emulated model computes the CPU's states and gradients", "[nn][cuda]") {
  for (const EtcConfig& config : variants()) {
    CAPTURE(config.use_residual_attention, config.use_running_mean);
    Twins twins(config);
    auto& [input, options, host, device] = twins;
    on(Device::cuda, device);
    const std::int64_t before = simt::emulator_counts().launches;
    const EncoderStates got = device.infer(input), expected = host.infer(input);
    CHECK(got.long_states.value().device() == Device::cuda);
    CHECK(relative_difference(got.long_states.value().to(Device::cpu), expected.long_states.value()) < kTolerance);
    CHECK(relative_difference(got.global_states.value().to(Device::cpu), expected.global_states.value()) < kTolerance);
    CHECK(simt::emulator_counts().launches > before);

    const Gradients gradients = device.fresh_gradients(input, options),
                    reference = host.fresh_gradients(input, options);
    REQUIRE(gradients.size() == reference.size());
    double largest = 0;
    for (const auto& [name, gradient] : reference) {
      for (std::int64_t i = 0; i < gradient.size(); ++i)
        largest = std::max(largest, std::abs(1.0 * gradient.data()[i]));
    }
    for (const auto& [name, gradient] : reference) {
      CAPTURE(name);
      double worst = 0;
      for (std::int64_t i = 0; i < gradient.size(); ++i) {
        test::keep_worst(worst, std::abs(1.0 * gradient.data()[i] - gradients.at(name).data()[i]));
      }
      CHECK(worst <= kTolerance * largest);
    }
  }
}

TEST_CASE("an emulated model watched, packed and in bf16 stays near the CPU's", "[nn][cuda]") {
  EtcConfig config = tiny_config();
  config.num_hidden_layers = 2;
  config.use_residual_attention = true;
  const EncoderInput input = tiny_input(config, {11, 4}, {3, 2});
  const auto scores_of = [&](TinyModel& model) {
    std::vector<Tensor> all;
    ForwardOptions options;
    options.watch = [&](std::int64_t, const Tensor& of_long, const Tensor&, const ExternalScores& scores) {
      all.push_back(of_long);
      if (scores.of("l2l"))
        all.insert(all.end(), {scores.of("l2l"), scores.of("l2g"), scores.of("g2g"), scores.of("g2l")});
    };
    Tape tape(Recording::off);
    model.encoder.forward(tape, input, options);
    return all;
  };
  TinyModel host(config), device(config);
  on(Device::cuda, device);
  const auto got = scores_of(device), expected = scores_of(host);
  REQUIRE(got.size() == expected.size());
  REQUIRE(got.size() == 1 + 2 * 5);
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(relative_difference(got[i], expected[i]) < kTolerance);
  }
  device.encoder.release_kernels(ComputeType::bf16);
  const Tensor rounded = device.infer(input).long_states.value().to(Device::cpu);
  const Tensor exact = host.infer(input).long_states.value();
  // Products of factors with 8 bits of mantissa, through two layers of normalised numbers.
  CHECK(relative_difference(rounded, exact) < 0.1);
  CHECK(relative_difference(rounded, exact) > 1e-4);
}

TEST_CASE("an emulated training in bf16 rounds dense layers and attention, near the CPU's fp32", "[nn][cuda]") {
  for (const EtcConfig& config : variants()) {
    CAPTURE(config.use_residual_attention, config.use_running_mean);
    Twins twins(config);
    auto& [input, options, host, device] = twins;
    const Gradients exact = host.fresh_gradients(input, options);
    on(Device::cuda, device);
    options.compute = ComputeType::bf16;
    const Gradients rounded = device.fresh_gradients(input, options);
    require_equal_bits(device.fresh_gradients(input, options), rounded);
    REQUIRE(rounded.size() == exact.size());
    double largest = 0, worst = 0;
    for (const auto& [name, gradient] : exact) {
      for (std::int64_t i = 0; i < gradient.size(); ++i) {
        largest = std::max(largest, std::abs(1.0 * gradient.data()[i]));
        test::keep_worst(worst, std::abs(1.0 * gradient.data()[i] - rounded.at(name).data()[i]));
      }
    }
    // A factor has a relative error of up to 2^-9, and two layers chain a dozen of them.
    CHECK(worst < 0.1 * largest);
    CHECK(worst > 1e-4 * largest);
  }
}

TEST_CASE("a model in bf16 keeps what products read in bf16: no pass converts it", "[nn][cuda]") {
  const EtcConfig config = tensor_core_config();
  Twins twins(config);
  auto& [input, options, host, device] = twins;
  on(Device::cuda, device);
  struct Launches {
    std::int64_t operands = simt::launches_of("attention operands to bf16");
    std::int64_t numbers = simt::launches_of("numbers to bf16");
    std::int64_t rows = simt::launches_of("rows to bf16");
  };
  // In training, the embeddings' dropout comes after their norms, and a checkpointed layer receives fp32 states.
  options.compute = ComputeType::bf16;
  const Launches untrained;
  device.fresh_gradients(input, options);
  const Launches trained;
  CHECK(trained.operands == untrained.operands);
  CHECK(trained.numbers - untrained.numbers == 2 * (1 + config.num_hidden_layers));
  // Matrices are rounded forward and backward, and biases of results in bf16 forward; in the first layer, which is
  // recomputed, forward twice. Gradients are not rounded separately.
  REQUIRE(config.num_hidden_layers == 2);
  const std::int64_t sides = 2, matrices = 8,
                     biased = 6;  // of a side: q, k and v twice, output, two of the feed-forward
  CHECK(trained.rows - untrained.rows == sides * (5 * matrices + 3 * biased));

  device.encoder.release_kernels(ComputeType::bf16);
  const Tensor first = device.infer(input).long_states.value().to(Device::cpu);
  const Launches before;
  const Tensor again = device.infer(input).long_states.value().to(Device::cpu);
  const Launches after;
  // Packed products and the norms of the embeddings wrote all inputs of the layers in bf16.
  CHECK(after.operands == before.operands);
  CHECK(after.numbers == before.numbers);
  // The remaining launches round the biases of bf16 results: of all projections, and of the first feed-forward layer.
  CHECK(after.rows - before.rows == 4 * config.num_hidden_layers);
  CHECK(equal_bits(first, again));
  const Tensor exact = host.infer(input).long_states.value();
  CHECK(relative_difference(again, exact) < 0.05);
  CHECK(relative_difference(again, exact) > 1e-4);
}

TEST_CASE("under strict determinism an example has the same bits alone and between others", "[nn][cuda]") {
  EtcConfig config = tiny_config();
  config.num_hidden_layers = 2;
  config.hidden_dropout_prob = 0.1;
  config.attention_probs_dropout_prob = 0.1;
  config.use_residual_attention = true;
  TinyModel model(config);
  on(Device::cuda, model);
  const std::vector<std::int64_t> lengths = {1, 37, 8}, globals = {2, 5, 1};
  ForwardOptions options;
  options.training = true;
  const auto states = [&](const EncoderInput& input) {
    Tape tape(Recording::on);
    const EncoderStates output = model.encoder.forward(tape, input, options);
    return std::pair(output.long_states.value().to(Device::cpu), output.global_states.value().to(Device::cpu));
  };
  // Rows of the second example that differ from those it has in the batch.
  const auto rows_that_differ = [&](ops::Determinism determinism) {
    ops::set_determinism(determinism);
    const EncoderInput all = tiny_input(config, lengths, globals);
    const auto together = states(all), alone = states(tiny_input(config, {lengths[1]}, {globals[1]}, 1));
    ops::set_determinism(ops::Determinism::run);
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < lengths[1]; ++i) {
      count += equal_rows(alone.first, i, together.first, all.long_offsets[1] + i) ? 0 : 1;
    }
    for (std::int64_t i = 0; i < globals[1]; ++i) {
      count += equal_rows(alone.second, i, together.second, all.global_offsets[1] + i) ? 0 : 1;
    }
    return count;
  };
  CHECK(rows_that_differ(ops::Determinism::strict) == 0);
  CHECK(rows_that_differ(ops::Determinism::run) >
        0);  // the emulated library's summation depends on the number of rows, like the real library's
}

TEST_CASE("three emulated training steps leave the CPU's weights, with AdamW and with LAMB", "[nn][cuda]") {
  EtcConfig config = tiny_config();
  config.num_hidden_layers = 2;
  config.use_residual_attention = true;
  for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::lamb}) {
    CAPTURE(static_cast<int>(kind));
    const auto train = [&](Device place) {
      TinyModel model(config);
      on(place, model);
      OptimizerOptions options;
      options.kind = kind;
      Optimizer optimizer(options);
      GradientAccumulator accumulator;
      for (std::int64_t step = 0; step < 3; ++step) {
        for (std::int64_t part = 0; part < 2; ++part) {
          model.parameters.drop_gradients();
          model.backward(tiny_input(config, {7 + part}, {2}, 2 * step + part));
          GradientSet gradients;
          for (const auto& parameter : model.parameters.all()) {
            gradients.push_back(std::exchange(parameter->grad, Tensor()));
          }
          accumulator.add(part, std::move(gradients));
        }
        put_gradients(model.parameters, accumulator.finish());
        const auto refs = param_refs(model.parameters);
        optimizer.step(refs, 0.01, clip_scale(global_norm(refs), 1.0));
      }
      // The values in a checkpoint of either device.
      const TemporaryFolder folder;
      TensorFileWriter writer;
      for (const auto& parameter : model.parameters.all()) writer.add(parameter->name, parameter->value);
      for (const auto& [name, moment] : optimizer.moments()) writer.add(name, moment);
      writer.write(folder / "model.safetensors");
      const TensorFileReader reader(folder / "model.safetensors");
      std::map<std::string, Tensor> saved;
      for (const auto& [name, entry] : reader.entries()) saved[name] = reader.read_tensor(name, Purpose::weights);
      return saved;
    };
    const auto cpu = train(Device::cpu), cuda = train(Device::cuda);
    REQUIRE(cpu.size() == cuda.size());
    for (const auto& [name, values] : cpu) {
      // An update is m/sqrt(v) times the rate of 0.01: if a gradient is nearly 0, its rounding error counts fully.
      if (name.ends_with("adam_m") || name.ends_with("adam_v")) continue;
      CAPTURE(name);
      REQUIRE(values.size() == cuda.at(name).size());
      std::int64_t off = 0;
      for (std::int64_t i = 0; i < values.size(); ++i)
        off += std::abs(values.data()[i] - cuda.at(name).data()[i]) > 1e-4f;
      CHECK(off <= values.size() / 20);
    }
  }
}
