// The cost per token in texts of different lengths, alone and in one batch: inference of the base model with shared
// Q/K/V projections (bench/peers/base.json), fp32.
//   bench_batch [--repeats N] [--threads N]      default 5 and 1
// Every call is warmed up, then all run in alternation, the shortest text with several calls per turn; medians of CPU
// seconds. A batch of mixed lengths should cost the sum of its parts, and a short text as much per token as a long one.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "bench/bench_main.h"
#include "bench/processor_time.h"
#include "etc_core/autograd/tape.h"
#include "etc_core/base/median.h"
#include "etc_core/base/parallel.h"
#include "etc_core/nn/etc_encoder.h"
#include "etc_core/nn/random_input.h"
#include "etc_core/ops/register.h"
#include "sparse/register_cpu.h"

namespace {

using namespace etc;

constexpr std::int64_t kTokensPerGlobal = 18;  // 228 global tokens for 4,096
constexpr std::int64_t kVocabulary = 30522;
constexpr std::int64_t kTokensOfTurn = 512;  // minimum tokens per turn
const std::vector<std::int64_t> kLengths = {64, 512, 1024, 4096};

struct Line {
  std::string name;
  std::int64_t tokens;
  EncoderInput input;
  std::vector<double> seconds;

  double median_seconds() const { return median(seconds); }
};

void measure(std::int64_t repeats) {
  EtcConfig config = etc_config_preset("base");
  config.vocab_size = kVocabulary;
  config.share_qkv_projections = true;
  ParameterSet parameters;
  EtcEncoder encoder(config, parameters);
  parameters.initialize(1);
  encoder.release_kernels();
  std::vector<Line> lines;
  std::int64_t all = 0;
  for (const std::int64_t length : kLengths) {
    lines.push_back({std::to_string(length), length, random_input(config, length, kTokensPerGlobal), {}});
    all += length;
  }
  lines.push_back({"all of these in one batch", all, random_batch(config, kLengths, kTokensPerGlobal), {}});
  for (std::int64_t turn = 0; turn <= repeats; ++turn) {
    for (Line& line : lines) {
      const std::int64_t calls = std::max<std::int64_t>(1, kTokensOfTurn / line.tokens);
      const double start = bench::processor_seconds();
      for (std::int64_t call = 0; call < calls; ++call) {
        Tape tape(Recording::off);
        encoder.forward(tape, line.input, {});
      }
      if (turn > 0) line.seconds.push_back((bench::processor_seconds() - start) / static_cast<double>(calls));
    }
  }
  const double long_token = lines[kLengths.size() - 1].median_seconds() / static_cast<double>(kLengths.back());
  double sum = 0;
  for (const Line& line : lines) {
    const double token = line.median_seconds() / static_cast<double>(line.tokens);
    std::printf("%-28s %8.3f s %8.3f ms per token, %.2f of the longest one's\n", line.name.c_str(),
                line.median_seconds(), 1e3 * token, token / long_token);
    if (&line != &lines.back()) sum += line.median_seconds();
  }
  std::printf("the batch takes %.3f of the sum of its parts\n", lines.back().median_seconds() / sum);
}

}  // namespace

int main(int argc, char** argv) {
  return bench::bench_main([&] {
    std::int64_t repeats = 5;
    int threads = 1;
    bench::read_arguments("bench_batch", argc, argv, {{"--repeats", &repeats}, {"--threads", &threads}});
    ops::register_cpu_ops();
    sparse::register_cpu_kernels();
    set_thread_count(threads);
    measure(repeats);
  });
}
