// A small dense encoder with its parameters, inputs for it, and its gradients.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "etc_core/nn/backends.h"
#include "etc_core/nn/dense_encoder.h"
#include "tests/core/encoder_sizes.h"

namespace etc::test {

using PositionMethod = PositionConfig::Method;
inline constexpr PositionMethod kPositionMethods[] = {
    PositionMethod::none,   PositionMethod::shaw,        PositionMethod::shaw_values,  PositionMethod::t5,
    PositionMethod::huang1, PositionMethod::huang2,      PositionMethod::huang3,       PositionMethod::huang4,
    PositionMethod::etc,    PositionMethod::nezha_index, PositionMethod::nezha_signed, PositionMethod::transformer_xl};

inline DenseConfig small_dense() {
  DenseConfig config =
      with_sizes(DenseConfig(), {.vocabulary = 30, .hidden = 24, .layers = 3, .heads = 2, .feed_forward = 40});
  config.max_absolute_position_embeddings = 64;
  config.initializer_range = 0.3;
  config.use_residual_attention = true;
  return config;
}

// One sequence of each length.
inline EncoderInput sequences(const std::vector<std::int64_t>& lengths) {
  EncoderInput input;
  for (const std::int64_t length : lengths) {
    for (std::int64_t i = 0; i < length; ++i) {
      input.token_ids.push_back(static_cast<std::int32_t>((7 * i + 3 * length) % 30));
      input.segment_ids.push_back(i > length / 2);
    }
    input.long_offsets.push_back(static_cast<std::int64_t>(input.token_ids.size()));
    input.global_offsets.push_back(0);
  }
  return input;
}

using DenseGradients = std::map<std::string, std::vector<float>>;

struct SmallDense {
  ParameterSet parameters;
  DenseEncoder encoder;

  // With initial values, except that scales of ReZero, which would be 0, are 0.6, 0.5, 0.4, ….
  explicit SmallDense(const DenseConfig& config) : encoder(config, parameters) {
    register_cpu_backend();
    parameters.initialize(5);
    float alpha = 0.6f;
    for (const auto& parameter : parameters.all()) {
      if (!parameter->name.ends_with("rezero_alpha")) continue;
      parameter->value.data()[0] = alpha;
      alpha -= 0.1f;
    }
  }

  Tensor states(const EncoderInput& input) {
    Tape tape(Recording::off);
    return encoder.forward(tape, input, {}).long_states.value().to(Device::cpu);
  }

  // Gradients of every parameter, from an upstream gradient whose elements all differ.
  DenseGradients gradients(const EncoderInput& input, const ForwardOptions& options) {
    parameters.drop_gradients();
    Tape tape(Recording::on);
    {
      const EncoderStates result = encoder.forward(tape, input, options);
      const Tensor& states = result.long_states.value();
      Tensor upstream = Tensor::empty(states.shape(), Purpose::activations);
      for (std::int64_t i = 0; i < upstream.size(); ++i) upstream.data()[i] = 0.5f - static_cast<float>(i % 13) / 12;
      result.long_states.gradient()->add(upstream.to(states.device()));
    }
    tape.backward();
    DenseGradients all;
    for (const auto& parameter : parameters.all()) {
      const Tensor gradient = parameter->grad.to(Device::cpu);
      all[parameter->name].assign(gradient.data(), gradient.data() + gradient.size());
    }
    return all;
  }
};

// States in the format of gradients, so that both are compared in the same way.
inline DenseGradients states_of(SmallDense& model, const EncoderInput& input) {
  const Tensor states = model.states(input);
  return {{"states", {states.data(), states.data() + states.size()}}};
}

// Options of a training step, with dropout.
inline ForwardOptions training(ComputeType compute) {
  ForwardOptions options;
  options.training = true;
  options.seed = 17;
  options.compute = compute;
  return options;
}

// Encoders of every placement of norms and scales, with and without running scores, and one with its own sublayer
// order.
inline std::vector<DenseConfig> dense_variants() {
  std::vector<DenseConfig> variants;
  using Norm = DenseConfig::Norm;
  for (const Norm norm : {Norm::post_ln, Norm::pre_ln, Norm::rezero, Norm::rezero_post_ln}) {
    for (const bool residual : {false, true}) {
      DenseConfig config = small_dense();
      config.norm = norm;
      config.use_residual_attention = residual;
      config.use_running_mean = residual && norm != Norm::post_ln;
      config.rezero_per_branch = config.scales_branches() && residual;
      if (norm == Norm::pre_ln || norm == Norm::rezero_post_ln) config.sublayer_order = "ssfsff";
      config.hidden_dropout_prob = 0.2;
      config.attention_probs_dropout_prob = 0.2;
      variants.push_back(config);
    }
  }
  return variants;
}

}  // namespace etc::test
