// A tiny encoder with inputs and a loss, for tests of the encoder as a whole.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "etc_core/autograd/functions.h"
#include "etc_core/base/random.h"
#include "etc_core/nn/etc_encoder.h"
#include "sparse/labels/builders.h"
#include "tests/core/autograd/gradient_check.h"

namespace etc::test {

inline EtcConfig tiny_config() {
  EtcConfig config;
  config.vocab_size = 20;
  config.segment_vocab_size = 4;
  config.hidden_size = 12;
  config.num_hidden_layers = 4;
  config.num_attention_heads = 2;
  config.local_radius = 3;
  config.relative_pos_max_distance = 2;
  config.relative_vocab_size = 9;
  config.intermediate_size = 16;
  config.initializer_range = 0.3;
  config.share_qkv_projections = false;
  config.hidden_dropout_prob = 0;
  config.attention_probs_dropout_prob = 0;
  return config;
}

// Examples of these long and global lengths with random tokens; every global token stands for three long ones.
inline EtcInput tiny_input(const EtcConfig& config, const std::vector<std::int64_t>& lengths,
                           const std::vector<std::int64_t>& globals, std::int64_t first_ordinal = 0) {
  EtcInput input;
  std::vector<sparse::AttentionStructure> structures;
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    const auto ordinal = first_ordinal + static_cast<std::int64_t>(b);
    const auto draw = [&](std::int64_t i, std::uint64_t what) {
      const auto bits =
          philox({static_cast<std::uint32_t>(i), 0, 0, 0}, mix_key(what, static_cast<std::uint64_t>(ordinal)));
      return static_cast<std::int32_t>(bits[0] % static_cast<std::uint64_t>(config.vocab_size));
    };
    std::vector<std::int32_t> sentences;
    for (std::int64_t i = 0; i < lengths[b]; ++i) {
      input.token_ids.push_back(draw(i, 1));
      input.segment_ids.push_back(draw(i, 2) % 3);
      sentences.push_back(static_cast<std::int32_t>(i / 3));
    }
    for (std::int64_t i = 0; i < globals[b]; ++i) input.global_token_ids.push_back(draw(i, 3));
    input.long_offsets.push_back(input.long_offsets.back() + lengths[b]);
    input.global_offsets.push_back(input.global_offsets.back() + globals[b]);
    input.sample_ordinals.push_back(ordinal);
    structures.push_back(sparse::structure_from_example_ids(
        std::vector<std::int32_t>(static_cast<std::size_t>(lengths[b]), 1),
        std::vector<std::int32_t>(static_cast<std::size_t>(globals[b]), 1), sentences));
  }
  input.labels = sparse::build_labels(structures, {config.local_radius, config.relative_pos_max_distance,
                                                   config.use_hard_g2l_mask, config.use_hard_l2g_mask});
  return input;
}

using Gradients = std::map<std::string, Tensor>;

// Parameters and encoder of one configuration, away from their initial values (no gamma is 1, no bias 0).
struct TinyModel {
  ParameterSet parameters;
  EtcEncoder encoder;

  explicit TinyModel(const EtcConfig& config) : encoder((register_cpu_backend(), config), parameters) {
    parameters.initialize(3);
    for (const auto& parameter : parameters.all()) {
      if (parameter->initializer.kind == Initializer::Kind::truncated_normal) continue;
      for (std::int64_t i = 0; i < parameter->size(); ++i) {
        parameter->value.data()[i] += 0.2f * uniform_from_bits(philox({static_cast<std::uint32_t>(i), 7, 0, 0},
                                                                      mix_key(parameter->name.size(), 9))[0]);
      }
    }
  }

  EtcOutput infer(const EtcInput& input) {
    Tape tape(false);
    return encoder.forward(tape, input, {});
  }

  // Gradients (on the host) of the weighted sum of both states (or one of them); adds to what the parameters have.
  void backward(const EtcInput& input, const ForwardOptions& options = {}, bool of_long = true, bool of_global = true) {
    Tape tape(true);
    {
      const EtcOutput output = encoder.forward(tape, input, options);
      seed(on_device(tape, output.long_states, Device::cpu), input.long_offsets, input.sample_ordinals, of_long, 100);
      seed(on_device(tape, output.global_states, Device::cpu), input.global_offsets, input.sample_ordinals, of_global,
           200);
    }
    tape.backward();
  }

  Gradients gradients() const {
    Gradients result;
    for (const auto& parameter : parameters.all()) {
      if (parameter->grad) result[parameter->name] = parameter->grad.clone().to(Device::cpu);
    }
    return result;
  }

  Gradients fresh_gradients(const EtcInput& input, const ForwardOptions& options = {}, bool of_long = true,
                            bool of_global = true) {
    parameters.drop_gradients();
    backward(input, options, of_long, of_global);
    return gradients();
  }

  // The loss weights of an example depend on its ordinal, so that it has the same loss alone and in a batch.
  static void seed(Var states, const std::vector<std::int64_t>& offsets, const std::vector<std::int64_t>& ordinals,
                   bool wanted, std::uint64_t key) {
    if (!wanted) return;
    float* gradient = states.grad().data();
    const std::int64_t width = states.value().cols();
    for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
      const Tensor w =
          noise({offsets[b + 1] - offsets[b], width}, mix_key(key, static_cast<std::uint64_t>(ordinals[b])));
      if (w.size() > 0) std::memcpy(gradient + offsets[b] * width, w.data(), static_cast<std::size_t>(w.size()) * 4);
    }
  }
};

inline bool equal_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() &&
         (a.size() == 0 || std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * 4) == 0);
}

inline void require_equal_bits(const Gradients& a, const Gradients& b) {
  REQUIRE(a.size() == b.size());
  for (const auto& [name, gradient] : a) {
    CAPTURE(name);
    REQUIRE(b.count(name) == 1);
    REQUIRE(equal_bits(gradient, b.at(name)));
  }
}

// Largest difference relative to the largest number.
inline double relative_difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  double difference = 0, largest = 1e-30;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    difference = std::max(difference, std::abs(static_cast<double>(a.data()[i]) - b.data()[i]));
    largest = std::max(largest, std::abs(static_cast<double>(b.data()[i])));
  }
  return difference / largest;
}

}  // namespace etc::test
