// Rates on the device: the two operators against sequence length, dense attention's products by the library beside
// them, and the base model. Times are of the host's clock between two waits for the device.
#include <algorithm>
#include <chrono>

#include "etc_core/autograd/attention.h"
#include "etc_core/base/device_memory.h"
#include "etc_core/base/device_state.h"
#include "etc_core/nn/etc_encoder.h"
#include "etc_core/nn/random_input.h"
#include "etc_core/ops/cuda/product.h"
#include "etc_core/optim/optimizer.h"
#include "sparse/labels/builders.h"
#include "tests/gpu_check/device_arrays.h"
#include "tests/gpu_check/stages.h"

namespace etc::gpu_check {

namespace {

constexpr std::int64_t kHeads = 12, kHeadSize = 64, kTokensPerGlobal = 16;
constexpr int kRepeats = 5;

// Median seconds of a call, after two that are not timed.
template <typename Run>
double seconds_of(const Run& run) {
  std::vector<double> seconds;
  for (int i = 0; i < kRepeats + 2; ++i) {
    wait_for(Device::cuda);
    const auto start = std::chrono::steady_clock::now();
    run();
    wait_for(Device::cuda);
    if (i > 1) seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

Tensor random_there(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  return random_on(Device::cuda, {rows, cols}, seed);
}

struct AttentionShape {
  std::int64_t length = 0, radius = 0;
  bool scores = false;
};

void attention(Report& report, const AttentionShape& shape) {
  const std::string name = "attention n=" + std::to_string(shape.length) + " radius=" + std::to_string(shape.radius) +
                           (shape.scores ? " scores" : "");
  run_case(report, name, [&](Json& figures) {
    const std::int64_t globals = shape.length / kTokensPerGlobal, width = kHeads * kHeadSize;
    const auto batch = std::make_shared<AttentionBatch>();
    const std::int64_t long_offsets[] = {0, shape.length}, global_offsets[] = {0, globals};
    sparse::LabelTensors labels;
    labels.examples = 1;
    labels.long_offsets = long_offsets;
    labels.global_offsets = global_offsets;
    labels.radius = shape.radius;
    batch->long_tiles = sparse::build_long_tiles(labels);
    batch->global_tiles = sparse::build_global_tiles(labels);
    batch->heads = kHeads;
    batch->head_size = kHeadSize;
    batch->compute = ComputeType::bf16;
    batch->sample_ordinals = {0};
    const Var q(random_there(shape.length, width, 1), true), k(random_there(shape.length, width, 2), true);
    const Var v(random_there(shape.length, width, 3), true), gk(random_there(globals, width, 4), true);
    const Var gv(random_there(globals, width, 5), true);
    const AttentionInputs inputs{{q}, {k}, {v}, {gk}, {gv}, {}};
    const Tensor dout = random_there(shape.length, width, 6);
    // Two layers of scores: the first writes them, the second, which is timed with it, adds.
    const auto layers = shape.scores ? 2 : 1;
    const auto pass = [&](bool backward) {
      if (shape.scores) {
        sparse::ScoreOptions options;
        options.layers = layers;
        options.heads = kHeads;
        options.types = {true, true, true, true};
        options.training = backward;
        options.device = Device::cuda;
        batch->scores.emplace(options, batch->long_tiles, batch->global_tiles);
      }
      Tape tape(backward);
      for (int layer = 0; layer < layers; ++layer) {
        const Var out = long_attention(tape, batch, layer, Pass::forward, inputs);
        if (backward) out.gradient()->add(dout);
      }
      if (backward) tape.backward();
      for (const Var& var : {q, k, v, gk, gv}) {
        Var handle = var;
        handle.drop_grad();
      }
    };
    const auto pairs = static_cast<double>(batch->long_tiles.l2l.visible_pairs + batch->long_tiles.l2g.visible_pairs);
    const double operations = 2.0 * kHeadSize * kHeads * pairs * layers;  // of one product
    const double forward = seconds_of([&] { pass(false); }), both = seconds_of([&] { pass(true); });
    figures["forward_seconds"] = forward;
    figures["forward_useful_tflops"] = 2 * operations / forward / 1e12;
    figures["forward_and_backward_seconds"] = both;
    figures["forward_and_backward_useful_tflops"] = 7 * operations / both / 1e12;
    return "";
  });
}

// Q·Kᵀ and P·V of all heads in bf16, without the softmax between them.
void dense_products(Report& report, std::int64_t length) {
  run_case(report, "dense attention's products by the library n=" + std::to_string(length), [&](Json& figures) {
    const std::int64_t words = length * kHeadSize / 2;
    const Tensor q = random_there(1, words, 1), k = random_there(1, words, 2), v = random_there(1, words, 3);
    const Tensor p = random_there(1, length * length / 2, 4);
    const Tensor s = Tensor::empty({length, length}, Purpose::activations, Device::cuda);
    const Tensor out = Tensor::empty({length, kHeadSize}, Purpose::activations, Device::cuda);
    ops::cuda::Product scores, sums;
    scores.rows = scores.cols = length;
    scores.inner = kHeadSize;
    scores.compute = ComputeType::bf16;
    scores.a = {q.data(), kHeadSize, false};
    scores.b = {k.data(), kHeadSize, true};
    scores.c = s.data();
    scores.c_stride = length;
    sums.rows = length;
    sums.cols = kHeadSize;
    sums.inner = length;
    sums.compute = ComputeType::bf16;
    sums.a = {p.data(), length, false};
    sums.b = {v.data(), kHeadSize, false};
    sums.c = out.data();
    sums.c_stride = kHeadSize;
    const double seconds = seconds_of([&] {
      for (std::int64_t head = 0; head < kHeads; ++head) {
        ops::cuda::multiply(scores);
        ops::cuda::multiply(sums);
      }
    });
    figures["seconds"] = seconds;
    figures["tflops"] = 4.0 * static_cast<double>(length * length) * kHeadSize * kHeads / seconds / 1e12;
    return "";
  });
}

void bandwidth(Report& report) {
  run_case(report, "copy of 1 GB on the device", [](Json& figures) {
    const std::int64_t bytes = 1 << 30;
    const Bytes from(bytes, Purpose::scratch, Device::cuda), to(bytes, Purpose::scratch, Device::cuda);
    const double seconds =
        seconds_of([&] { copy_bytes(Device::cuda, const_cast<void*>(to.data()), Device::cuda, from.data(), bytes); });
    figures["gb_per_second_read_and_written"] = 2.0 * static_cast<double>(bytes) / seconds / 1e9;
    return "";
  });
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
    const double seconds = seconds_of(step);
    figures["seconds"] = seconds;
    figures["tokens_per_second"] = static_cast<double>(length) / seconds;
    figures["peak_gb"] = static_cast<double>(memory_ledger::report().peak) / 1e9;
    return "";
  });
}

}  // namespace

void bench(Report& report) {
  bandwidth(report);
  for (const std::int64_t length : {512, 2048, 4096, 8192, 32768, 65536}) {
    for (const std::int64_t radius : {84, 255}) {
      for (const bool scores : {false, true}) attention(report, {length, radius, scores});
    }
  }
  for (const std::int64_t length : {512, 4096, 16384}) dense_products(report, length);
  for (const std::int64_t length : {4096, 16384, 65536}) {
    base_model(report, length, false);
    base_model(report, length, true);
  }
}

}  // namespace etc::gpu_check
