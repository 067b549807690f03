// Which position methods can point to a fixed distance: a one-layer dense encoder learns to predict, at every position
// of a random sequence, the token three positions to the left (relative-positions 17).
//
//   build/cpu/offset_task [--methods none,absolute,shaw,…] [--seeds 1,2,3] [--steps 1500] [--threads N]
//
// Sequences of 64 random tokens from 50, new ones in every step, 32 per batch; width 64, 4 heads, dropout 0, AdamW at
// 1e-3 after 100 steps of warm-up. Accuracy is measured on 64 held-out sequences. CSV: method, seed, step, accuracy,
// mean loss since the last row in nats, seconds since the run began.
#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "bench/bench_main.h"
#include "etc_core/autograd/functions.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/random.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/dense_encoder.h"
#include "etc_core/ops/cross_entropy.h"
#include "etc_core/optim/optimizer.h"

namespace {

using namespace etc;

constexpr std::int64_t kVocabulary = 50, kLength = 64, kBatch = 32, kHeldOut = 64, kOffset = 3, kHidden = 64;
constexpr std::int64_t kWarmUp = 100, kEvery = 50;
constexpr double kRate = 1e-3;

// "none", "absolute", or a value of the key relative_positions.
DenseConfig configuration(const std::string& method) {
  Json json = {
      {"vocab_size", kVocabulary},        {"hidden_size", kHidden},
      {"num_hidden_layers", 1},           {"num_attention_heads", 4},
      {"intermediate_size", 2 * kHidden}, {"max_absolute_position_embeddings", method == "absolute" ? kLength : 0},
      {"hidden_dropout_prob", 0},         {"attention_probs_dropout_prob", 0}};
  if (method != "absolute") json["relative_positions"] = method;
  DenseConfig config = dense_config_from_json(json, "offset_task", UnknownKeys::refuse);
  config.validate();
  return config;
}

// Sequences first … first+count-1 of a stream of random sequences.
EncoderInput sequences(std::uint64_t stream, std::int64_t first, std::int64_t count) {
  EncoderInput input;
  for (std::int64_t b = first; b < first + count; ++b) {
    for (std::int64_t i = 0; i < kLength; ++i) {
      const auto word = philox({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(b), 0, 0}, stream)[0];
      input.token_ids.push_back(static_cast<std::int32_t>(word % kVocabulary));
    }
    input.long_offsets.push_back(std::ssize(input.token_ids));
    input.global_offsets.push_back(0);
  }
  return input;
}

// The token to predict at every position; -1 if there is none.
std::vector<std::int32_t> targets(const EncoderInput& input) {
  std::vector<std::int32_t> wanted(input.token_ids.size(), -1);
  for (std::size_t t = 0; t < wanted.size(); ++t) {
    if (t % kLength >= kOffset) wanted[t] = input.token_ids[t - kOffset];
  }
  return wanted;
}

class Run {
 public:
  Run(const std::string& method, std::uint64_t seed)
      : method_(method), seed_(seed), encoder_(configuration(method), parameters_), optimizer_({}) {
    const Initializer kernel{Initializer::Kind::truncated_normal, 0.02}, bias{Initializer::Kind::zeros, 0};
    head_.parts = {{&parameters_.add("offset_task/output/kernel", {kHidden, kVocabulary}, kernel),
                    &parameters_.add("offset_task/output/bias", {kVocabulary}, bias)}};
    parameters_.initialize(seed);
  }

  void train(std::int64_t steps) {
    const auto start = std::chrono::steady_clock::now();
    double loss = 0;
    for (std::int64_t step = 0; step < steps; ++step) {
      loss += train_step(step) / kEvery;
      if ((step + 1) % kEvery != 0) continue;
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      std::printf("%s,%llu,%lld,%.4f,%.4f,%.2f\n", method_.c_str(), static_cast<unsigned long long>(seed_),
                  static_cast<long long>(step + 1), accuracy(), loss, seconds);
      std::fflush(stdout);
      loss = 0;
    }
  }

 private:
  static constexpr std::uint64_t kHeldOutStream = 0;  // streams of the seeds begin at 1

  Var logits(Tape& tape, const EncoderInput& input) {
    return linear(tape, encoder_.forward(tape, input, {}).long_states, head_);  // [T, V]
  }

  // The mean loss of the step's batch.
  double train_step(std::int64_t step) {
    const EncoderInput input = sequences(seed_, step * kBatch, kBatch);
    const std::vector<std::int32_t> wanted = targets(input);
    const double counted = static_cast<double>(kBatch * (kLength - kOffset));
    std::vector<std::int64_t> offsets;
    for (std::int64_t t = 0; t <= std::ssize(wanted); ++t) offsets.push_back(t * kVocabulary);
    std::vector<double> losses(wanted.size());
    parameters_.drop_gradients();
    Tape tape(Recording::on);
    {
      Var said = logits(tape, input);
      ops::cross_entropy(Device::cpu, {.groups = std::ssize(wanted),
                                       .offsets = offsets.data(),
                                       .logits = said.value().data(),
                                       .target_index = wanted.data(),
                                       .scale = 1 / counted,
                                       .losses = losses.data(),
                                       .dlogits = said.grad().data()});
    }
    tape.backward();
    const std::vector<ParamRef> refs = param_refs(parameters_);
    const double warm = static_cast<double>(std::min(step + 1, kWarmUp)) / static_cast<double>(kWarmUp);
    optimizer_.step(refs, kRate * warm, clip_scale(global_norm(refs), 1.0));
    double sum = 0;
    for (const double each : losses) sum += each;
    return sum / counted;
  }

  double accuracy() {
    const EncoderInput input = sequences(kHeldOutStream, 0, kHeldOut);
    const std::vector<std::int32_t> wanted = targets(input);
    Tape tape(Recording::off);
    const Tensor said = logits(tape, input).value();
    std::int64_t right = 0;
    for (std::int64_t t = 0; t < std::ssize(wanted); ++t) {
      const float* row = said.data() + t * kVocabulary;
      right += std::max_element(row, row + kVocabulary) - row == wanted[static_cast<std::size_t>(t)];
    }
    return static_cast<double>(right) / static_cast<double>(kHeldOut * (kLength - kOffset));
  }

  std::string method_;
  std::uint64_t seed_;
  ParameterSet parameters_;
  DenseEncoder encoder_;
  Dense head_;
  Optimizer optimizer_;
};

struct Options {
  std::string methods =
      "none,absolute,shaw,shaw_values,t5,transformer_xl,huang1,huang2,huang3,huang4,nezha_index,nezha_signed";
  std::string seeds = "1,2,3";
  std::int64_t steps = 1500;
};

std::int64_t whole_number(const std::string& name, const std::string& text) {
  std::size_t read = 0;
  const long long number = std::isdigit(static_cast<unsigned char>(text.c_str()[0])) ? std::stoll(text, &read) : 0;
  if (number < 1 || read != text.size()) fail_usage("offset_task", "{}: expected at least 1, got {}", name, text);
  return number;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int n = 1; n < argc; n += 2) {
    const std::string name = argv[n], value = n + 1 < argc ? argv[n + 1] : "";
    if (value.empty()) fail_usage("offset_task", "{}: expected a value", name);
    if (name == "--methods") {
      options.methods = value;
    } else if (name == "--seeds") {
      options.seeds = value;
    } else if (name == "--steps") {
      options.steps = whole_number(name, value);
    } else if (name == "--threads") {
      set_thread_count(static_cast<int>(whole_number(name, value)));
    } else {
      fail_usage("offset_task", "unknown option {}: expected --methods, --seeds, --steps or --threads", name);
    }
  }
  return options;
}

void run(int argc, char** argv) {
  const Options options = parse(argc, argv);
  register_cpu_backend();
  std::printf("method,seed,step,accuracy,loss,seconds\n");
  std::istringstream methods(options.methods);
  for (std::string method; std::getline(methods, method, ',');) {
    std::istringstream seeds(options.seeds);
    for (std::string seed; std::getline(seeds, seed, ',');) {
      Run(method, static_cast<std::uint64_t>(whole_number("--seeds", seed))).train(options.steps);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  return etc::bench::bench_main([&] { run(argc, argv); });
}
