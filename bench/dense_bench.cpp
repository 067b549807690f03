// CPU seconds of one call of a dense base encoder on a ragged batch of texts: inference, or a training step.
//   bench_dense --lengths 128,115,… [--mode infer|train] [--residual off|sum] [--threads N] [--repeats N]
// fp32, random weights, no dropout, no head. A step is forward, backward of the mean square of the states, AdamW. One
// call warms up; the last line of the output is JSON with the medians. `bench/peers/dense.py` compares them with other
// programs.
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "bench/bench_main.h"
#include "bench/processor_time.h"
#include "etc_core/autograd/tape.h"
#include "etc_core/base/error.h"
#include "etc_core/base/median.h"
#include "etc_core/base/parallel.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/dense_encoder.h"
#include "etc_core/nn/random_input.h"
#include "etc_core/optim/optimizer.h"

namespace {

using namespace etc;

struct Options {
  std::vector<std::int64_t> lengths;
  bool training = false, residual = false;
  std::int64_t repeats = 3;
};

Options parse(int argc, char** argv) {
  Options options;
  std::string mode = "infer", residual = "off";
  int threads = thread_count();
  bench::read_arguments("bench_dense", argc, argv,
                        {{"--lengths", &options.lengths, true},
                         {"--mode", &mode, false, {"infer", "train"}},
                         {"--residual", &residual, false, {"off", "sum"}},
                         {"--threads", &threads},
                         {"--repeats", &options.repeats}});
  options.training = mode == "train";
  options.residual = residual == "sum";
  set_thread_count(threads);
  return options;
}

// An encoder and the inputs of a call.
struct Work {
  explicit Work(const Options& options) : training(options.training) {
    config.vocab_size = 30522;
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
    config.use_residual_attention = options.residual;
    encoder = config.make_encoder(parameters);
    parameters.initialize(1);
    input = random_batch(config, options.lengths, /*tokens_per_global=*/16);
    if (!training) encoder->release_kernels();
  }

  void call() {
    if (training) return step();
    Tape tape(Recording::off);
    encoder->forward(tape, input, {});
  }

  void step() {
    parameters.drop_gradients();
    Tape tape(Recording::on);
    {
      ForwardOptions options;
      options.training = true;
      Var states = encoder->forward(tape, input, options).long_states;
      const Tensor& y = states.value();
      const Tensor& dy = states.grad();
      const float share = 2.0f / static_cast<float>(y.size());
      for (std::int64_t i = 0; i < y.size(); ++i) dy.data()[i] = share * y.data()[i];
    }
    tape.backward();
    optimizer.step(param_refs(parameters), 1e-6, 1.0);
  }

  DenseConfig config = dense_config_preset("base");
  ParameterSet parameters;
  std::unique_ptr<Encoder> encoder;
  EncoderInput input;
  Optimizer optimizer{{}};
  bool training;
};

void run(const Options& options) {
  register_cpu_backend();
  Work work(options);
  work.call();  // packs weights and takes page faults
  std::vector<double> cpu, wall;
  for (std::int64_t i = 0; i < options.repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const double before = bench::processor_seconds();
    work.call();
    cpu.push_back(bench::processor_seconds() - before);
    wall.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::printf("{\"cpu_s\": %.6f, \"wall_s\": %.6f}\n", median(cpu), median(wall));
}

}  // namespace

int main(int argc, char** argv) {
  return bench::bench_main([&] { run(parse(argc, argv)); });
}
