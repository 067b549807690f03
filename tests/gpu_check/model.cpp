// Whole models on the device: forward, backward and updates compared with the CPU's, and with the published model's
// numbers from a pack (written by pack.cpp).
#include <cmath>
#include <cstring>

#include "etc_core/autograd/functions.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "etc_core/nn/etc_encoder.h"
#include "etc_core/optim/optimizer.h"
#include "tests/core/nn/tiny_case.h"
#include "tests/gpu_check/golden_pack.h"
#include "tests/gpu_check/stages.h"
#include "tests/support/worst.h"

namespace etc::gpu_check {

namespace {

// States and gradients of a model, on the host.
struct Outcome {
  Tensor of_long, of_global;
  std::map<std::string, Tensor> gradients;
  double loss = 0;
};

// loss = sum of states times weights; the weight tensors have the states' sizes.
Outcome run_model(EtcEncoder& encoder, ParameterSet& parameters, const EncoderInput& input, const Tensor& weights_long,
                  const Tensor& weights_global, bool backward, ComputeType compute = ComputeType::fp32) {
  Outcome outcome;
  ForwardOptions options;
  options.compute = compute;
  Tape tape(backward ? Recording::on : Recording::off);
  {
    const EncoderStates output = encoder.forward(tape, input, options);
    Var of_long = on_device(tape, output.long_states, Device::cpu);
    Var of_global = on_device(tape, output.global_states, Device::cpu);
    outcome.of_long = of_long.value();
    outcome.of_global = of_global.value();
    if (!backward) return outcome;
    for (const auto& [states, weights] : {std::pair(&of_long, &weights_long), std::pair(&of_global, &weights_global)}) {
      for (std::int64_t i = 0; i < weights->size(); ++i) {
        outcome.loss += static_cast<double>(weights->data()[i]) * states->value().data()[i];
      }
      std::copy_n(weights->data(), weights->size(), states->grad().data());
    }
  }
  tape.backward();
  for (const auto& parameter : parameters.all()) {
    if (parameter->grad) outcome.gradients[parameter->name] = parameter->grad.to(Device::cpu);
  }
  return outcome;
}

// For outputs, which are normalised, and for gradients relative to the largest of a tensor. Rounding to bf16 changes a
// factor by up to 2^-9 of its value, and about a dozen roundings follow one another.
constexpr double kBf16Tolerance = 0.05;

// The largest difference over entries whose expected value is not nan.
double worst_of(const float* got, const float* expected, std::int64_t size) {
  double worst = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    if (std::isnan(expected[i])) continue;
    test::keep_worst(worst, std::abs(static_cast<double>(got[i]) - expected[i]));
  }
  return worst;
}

double largest_of(const Tensor& tensor) {
  double largest = 0;
  for (std::int64_t i = 0; i < tensor.size(); ++i) largest = std::max(largest, std::abs(1.0 * tensor.data()[i]));
  return largest;
}

// Differences of two sets of gradients, relative to max(largest of the tensor, 1 % of the largest of all).
double gradient_difference(const std::map<std::string, Tensor>& got, const std::map<std::string, Tensor>& expected) {
  double all = 0, worst = 0;
  for (const auto& [name, tensor] : expected) all = std::max(all, largest_of(tensor));
  for (const auto& [name, tensor] : expected) {
    const auto found = got.find(name);
    if (found == got.end() || found->second.size() != tensor.size()) return HUGE_VAL;
    const double scale = std::max(largest_of(tensor), 0.01 * all);
    test::keep_worst(worst, worst_of(found->second.data(), tensor.data(), tensor.size()) / scale);
  }
  return got.size() == expected.size() ? worst : HUGE_VAL;
}

void golden(Report& report, const GoldenPack& pack, const std::string& name) {
  run_case(report, "golden " + name, [&](Json& figures) -> std::string {
    const PackedCase c = pack.read(name);
    ParameterSet parameters;
    EtcEncoder encoder(c.config, parameters);
    pack.fill(name, parameters);
    parameters.to(Device::cuda);
    const Outcome got = run_model(encoder, parameters, c.input, c.weights_long, c.weights_global, c.has_gradients);
    const double outputs = std::max(worst_of(got.of_long.data(), c.of_long.data(), c.of_long.size()),
                                    worst_of(got.of_global.data(), c.of_global.data(), c.of_global.size()));
    figures["outputs"] = outputs;
    if (!(outputs <= 1e-5)) return "outputs differ from the published model's";
    if (!c.has_gradients) return "";
    const double loss = std::abs(got.loss - c.loss) / std::max(1.0, std::abs(c.loss));
    const double gradients = gradient_difference(got.gradients, c.gradients);
    figures["loss"] = loss;
    figures["gradients"] = gradients;
    return loss <= 1e-5 && gradients <= 1e-5 ? "" : "loss or gradients differ from the published model's";
  });
}

}  // namespace

// A model's outcome on the device and on the host, starting from equal weights.
std::pair<Outcome, Outcome> on_both(const EtcConfig& config, ComputeType of_device) {
  const EncoderInput input = test::tiny_input(config, {11, 4, 70}, {3, 2, 5});
  const auto outcome = [&](Device device) {
    ParameterSet parameters;
    EtcEncoder encoder(config, parameters);
    parameters.initialize(3);
    parameters.to(device);
    const auto weights = [&](std::int64_t rows) {
      const Tensor ones = Tensor::empty({rows, config.hidden_size}, Purpose::scratch);
      for (std::int64_t i = 0; i < ones.size(); ++i) ones.data()[i] = static_cast<float>(i % 7) - 3.0f;
      return ones;
    };
    const ComputeType compute = device == Device::cuda ? of_device : ComputeType::fp32;
    return run_model(encoder, parameters, input, weights(input.long_tokens()), weights(input.global_tokens()), true,
                     compute);
  };
  return {outcome(Device::cuda), outcome(Device::cpu)};
}

std::string compare(const std::pair<Outcome, Outcome>& both, double tolerance, Json& figures) {
  const auto& [device, host] = both;
  figures["outputs"] = worst_of(device.of_long.data(), host.of_long.data(), host.of_long.size());
  figures["gradients"] = gradient_difference(device.gradients, host.gradients);
  const bool near = figures["outputs"] <= tolerance && figures["gradients"] <= tolerance;
  return near ? "" : "differs from the CPU's";
}

void model(Report& report, const std::filesystem::path& pack) {
  for (const bool residual : {false, true}) {
    EtcConfig config = test::tiny_config();
    config.use_residual_attention = residual;
    config.grad_checkpointing_period = residual ? 1 : 0;
    run_case(report, residual ? "tiny model with scores, as the CPU's" : "tiny model, as the CPU's",
             [&](Json& figures) { return compare(on_both(config, ComputeType::fp32), 1e-5, figures); });
    // Head and layer sizes are multiples of tensor-core tiles: activations and gradients between GEMMs are bf16.
    config.num_hidden_layers = 2;
    config.hidden_size = 128;
    config.num_attention_heads = 2;
    config.intermediate_size = 256;
    config.initializer_range = 0.05;  // with larger weights attention selects one key, and rounding decides which
    run_case(report,
             residual ? "small model in bf16 with scores, near the CPU's" : "small model in bf16, near the CPU's",
             [&](Json& figures) { return compare(on_both(config, ComputeType::bf16), kBf16Tolerance, figures); });
  }
  if (pack.empty()) return;
  const GoldenPack goldens(pack);
  for (const std::string& name : goldens.names()) golden(report, goldens, name);
}

}  // namespace etc::gpu_check
