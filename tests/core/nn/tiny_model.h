// A tiny encoder with inputs and a loss, for tests of the encoder as a whole.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "etc_core/autograd/functions.h"
#include "etc_core/base/random.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/etc_encoder.h"
#include "tests/core/autograd/gradient_check.h"
#include "tests/core/nn/tiny_case.h"
#include "tests/support/worst.h"

namespace etc::test {

using Gradients = std::map<std::string, Tensor>;

// Compares the bits of one row of each of two state tensors.
inline bool equal_rows(const Tensor& a, std::int64_t row_a, const Tensor& b, std::int64_t row_b) {
  return std::memcmp(a.data() + row_a * a.cols(), b.data() + row_b * b.cols(),
                     static_cast<std::size_t>(a.cols()) * 4) == 0;
}

// Encoder of one configuration with parameters that differ from their initial values (no gamma is 1, no bias 0).
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

  EncoderStates infer(const EncoderInput& input) {
    Tape tape(Recording::off);
    return encoder.forward(tape, input, {});
  }

  // Gradients (on the host) of the weighted sum of both states (or one of them); adds to the parameters' gradients.
  void backward(const EncoderInput& input, const ForwardOptions& options = {}, bool of_long = true,
                bool of_global = true) {
    Tape tape(Recording::on);
    {
      const EncoderStates output = encoder.forward(tape, input, options);
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

  Gradients fresh_gradients(const EncoderInput& input, const ForwardOptions& options = {}, bool of_long = true,
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
    keep_worst(difference, std::abs(static_cast<double>(a.data()[i]) - b.data()[i]));
    largest = std::max(largest, std::abs(static_cast<double>(b.data()[i])));
  }
  return difference / largest;
}

}  // namespace etc::test
