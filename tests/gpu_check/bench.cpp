// Rates on the device: memory, the two operators (bench_attention.cpp), and the base model.
#include "etc_core/base/device_memory.h"
#include "etc_core/nn/etc_encoder.h"
#include "etc_core/nn/random_input.h"
#include "etc_core/optim/optimizer.h"
#include "tests/gpu_check/stages.h"
#include "tests/gpu_check/stopwatch.h"

namespace etc::gpu_check {

namespace {

constexpr std::int64_t kTokensPerGlobal = 16;
constexpr int kRepeats = 5;

// Bytes read and written in a second.
double bandwidth(Report& report) {
  double rate = 0;
  run_case(report, "copy of 1 GB on the device", [&](Json& figures) {
    const std::int64_t bytes = 1 << 30;
    const Bytes from(bytes, Purpose::scratch, Device::cuda), to(bytes, Purpose::scratch, Device::cuda);
    const double seconds = seconds_of(
        kRepeats, [&] { copy_bytes(Device::cuda, const_cast<void*>(to.data()), Device::cuda, from.data(), bytes); });
    rate = 2.0 * static_cast<double>(bytes) / seconds;
    figures["gb_per_second_read_and_written"] = rate / 1e9;
    return "";
  });
  return rate;
}

void base_model(Report& report, std::int64_t length, bool training) {
  const std::string what = training ? "training, bf16" : "inference, bf16";
  run_case(report, "base model, " + what + ", n=" + std::to_string(length), [&](Json& figures) {
    EtcConfig config = etc_config_preset("base");
    if (config.vocab_size == 0) config.vocab_size = 30522;
    config.use_residual_attention = true;
    config.grad_checkpointing_period = 1;
    ParameterSet parameters;
    EtcEncoder encoder(config, parameters);
    parameters.initialize(1);
    parameters.to(Device::cuda);
    if (!training) encoder.release_kernels(ComputeType::bf16);
    const EtcInput input = random_input(config, length, kTokensPerGlobal);
    Optimizer optimizer({});
    ForwardOptions options;
    options.training = training;
    options.compute = ComputeType::bf16;
    const auto step = [&] {
      Tape tape(training);
      EtcOutput states = encoder.forward(tape, input, options);
      if (!training) return;
      for (const Var& var : {states.long_states, states.global_states}) {
        const Tensor gradient = Tensor::zeros(var.value().shape(), Purpose::activations, Device::cuda);
        var.gradient()->add(gradient);
      }
      states = {};
      tape.backward();
      const auto refs = param_refs(parameters);
      optimizer.step(refs, 1e-6, clip_scale(global_norm(refs), 1.0));
      parameters.drop_gradients();
    };
    step();
    memory_ledger::reset_peak();
    const double seconds = seconds_of(kRepeats, step);
    figures["seconds"] = seconds;
    figures["tokens_per_second"] = static_cast<double>(length) / seconds;
    figures["peak_gb"] = static_cast<double>(memory_ledger::report().peak) / 1e9;
    return "";
  });
}

}  // namespace

void bench(Report& report) {
  AttentionBench attention;
  attention.bytes_per_second = bandwidth(report);
  bench_attention(report, attention);
  for (const std::int64_t length : {4096, 16384, 65536}) {
    base_model(report, length, false);
    base_model(report, length, true);
  }
}

}  // namespace etc::gpu_check
