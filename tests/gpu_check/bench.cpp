// Rates on the device: memory, the two operators (bench_attention.cpp), and the base model.
#include <string>
#include <vector>

#include "etc_core/base/device_memory.h"
#include "etc_core/base/profiler.h"
#include "etc_core/nn/etc_encoder.h"
#include "etc_core/nn/random_input.h"
#include "etc_core/ops/cuda/product.h"
#include "etc_core/optim/optimizer.h"
#include "tests/gpu_check/device_arrays.h"
#include "tests/gpu_check/stages.h"
#include "tests/gpu_check/stopwatch.h"

namespace etc::gpu_check {

namespace {

constexpr std::int64_t kTokensPerGlobal = 16;
constexpr int kRepeats = 5;

// Bytes read and written per second.
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

// Operations per second of one large bf16 GEMM: the rate that the device reaches.
double product_rate(Report& report) {
  double rate = 0;
  run_case(report, "product of 8192 x 8192 x 8192, bf16", [&](Json& figures) {
    constexpr std::int64_t kSize = 8192;
    // Floats reinterpreted as pairs of bf16: the values do not matter, but zeros would use less power.
    const Tensor a = random_on(Device::cuda, {kSize * kSize / 2}, 1),
                 b = random_on(Device::cuda, {kSize * kSize / 2}, 2);
    const Tensor c = Tensor::zeros({kSize, kSize}, Purpose::scratch, Device::cuda);
    ops::cuda::Product product;
    product.rows = product.cols = product.inner = kSize;
    product.compute = ComputeType::bf16;
    product.a = {a.data(), kSize, false};
    product.b = {b.data(), kSize, false};
    product.c = const_cast<float*>(c.data());
    product.c_stride = kSize;
    const double operations = 2.0 * kSize * kSize * kSize;
    rate = operations / seconds_of(kRepeats, [&] { ops::cuda::multiply(product); });
    figures["tflops"] = rate / 1e12;
    return "";
  });
  return rate;
}

// Useful operations of a call: two per multiply-add, padding not counted.
template <typename Run>
double operations_of(const Run& run) {
  profiler::start();
  run();
  profiler::stop();
  double operations = 0;
  for (const profiler::Row& row : profiler::rows()) operations += row.work.operations;
  return operations;
}

struct ModelCase {
  std::int64_t length, batch;
  bool training;
  std::int64_t checkpointing;  // period; 0: none
};

void base_model(Report& report, const ModelCase& model, double product_rate) {
  const std::string what = model.training ? "training, bf16" : "inference, bf16";
  const std::string name = "base model, " + what + ", n=" + std::to_string(model.length) + ", batch " +
                           std::to_string(model.batch) + (model.checkpointing > 0 ? ", checkpointed" : "");
  run_case(report, name, [&](Json& figures) {
    EtcConfig config = etc_config_preset("base");
    if (config.vocab_size == 0) config.vocab_size = 30522;
    config.use_residual_attention = true;
    config.grad_checkpointing_period = model.checkpointing;
    ParameterSet parameters;
    EtcEncoder encoder(config, parameters);
    parameters.initialize(1);
    parameters.to(Device::cuda);
    if (!model.training) encoder.release_kernels(ComputeType::bf16);
    const std::vector<std::int64_t> lengths(static_cast<std::size_t>(model.batch), model.length);
    EncoderInput input = random_batch(config, lengths, kTokensPerGlobal);
    for (std::int64_t b = 0; b < model.batch; ++b) input.sample_ordinals.push_back(b);
    Optimizer optimizer({});
    ForwardOptions options;
    options.training = model.training;
    options.compute = ComputeType::bf16;
    const auto step = [&] {
      Tape tape(model.training ? Recording::on : Recording::off);
      EncoderStates states = encoder.forward(tape, input, options);
      if (!model.training) return;
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
    const double operations = operations_of(step);
    memory_ledger::reset_peak();
    const double seconds = seconds_of(kRepeats, step);
    figures["seconds"] = seconds;
    figures["tokens_per_second"] = static_cast<double>(model.length * model.batch) / seconds;
    figures["useful_tflops"] = operations / seconds / 1e12;
    if (product_rate > 0) figures["share_of_the_large_product"] = operations / seconds / product_rate;
    figures["peak_gb"] = static_cast<double>(memory_ledger::report().peak) / 1e9;
    return "";
  });
}

}  // namespace

void bench(Report& report) {
  AttentionBench attention;
  attention.bytes_per_second = bandwidth(report);
  bench_attention(report, attention);
  const double rate = product_rate(report);
  for (const bool training : {false, true}) {
    base_model(report, {4096, 8, training, 0}, rate);
    for (const std::int64_t length : {4096, 16384, 65536}) base_model(report, {length, 1, training, 1}, rate);
  }
}

}  // namespace etc::gpu_check
