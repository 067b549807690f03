// Time cost of residual scores: both operators of an encoder's inference with and without scores, compared with the
// time that reading and writing the scores in memory takes.
//   bench_scores [--lengths L,…] [--heads N] [--repeats N] [--threads N] [--layers N]   default 512 to 16384, 12, 5, 1, 12
// For each length, and for scores of 32 and of 16 bits: seconds of one layer's long and global attention, without
// scores and in each of the modes an encoder uses (the first layer writes, middle layers add, the last adds and does
// not keep), all in alternation with a pass over memory (x += 1, read and written, larger than caches). With one global
// token per 18 the scores of 65,536 tokens take 2.1 GB per head: `--lengths 32768,65536 --heads 2`. Over all layers
//   extra   = sum of (with scores) - (without)
//   traffic = bytes of C * (1 + 2 (layers - 2) + 1)          written, read and written, read
//   limit   = traffic / (bytes per second of the pass over memory)
// CPU seconds are given as medians, and computed again from each mode's least times. The least times are better where
// the processor's rate varies (shared cores, clock changes), since the difference of two long times is then mostly
// noise. Nothing else in an encoder reads or writes the scores. A pass over memory between two calls leaves the caches
// as cold as the dense layers between two attentions do.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "bench/bench_main.h"
#include "bench/cases/attention.h"
#include "bench/processor_time.h"
#include "etc_core/base/error.h"
#include "etc_core/base/median.h"
#include "etc_core/base/parallel.h"
#include "sparse/register_cpu.h"
#include "sparse/scores.h"

namespace {

using namespace etc;
using bench::AttentionProblem;
using bench::Side;
using bench::Structure;
using sparse::ScoreMode;

constexpr std::int64_t kWalkBytes = std::int64_t{256} << 20;

struct Options {
  std::vector<std::int64_t> lengths = {512, 1024, 2048, 4096, 8192, 16384};
  std::int64_t heads = 12, repeats = 5, threads = 1, layers = 12;
};

// Both operators of one layer and the scores that they pass to the next layer.
class Layer {
 public:
  Layer(std::int64_t length, std::int64_t heads, ScoreType type) : type_(type) {
    const std::int64_t globals = std::max<std::int64_t>(1, 230 * length / 4096);
    const bench::AttentionCase base{"", {length}, {globals}, 84, heads, 64, 32, bench::Labels::document};
    const auto structure = std::make_shared<const Structure>(base);
    for (const Side side : {Side::long_side, Side::global_side}) {
      problems_.push_back(std::make_unique<AttentionProblem>(base, structure, side));
      for (int t = 0; t < 2; ++t) {
        const std::int64_t elements = sparse::score_elements(problems_.back()->tiles(t), base.heads);
        const bool half = type == ScoreType::fp16;
        running_.emplace_back(half ? 0 : elements, Purpose::scores);
        running_.back().zero();
        half_.emplace_back(half ? elements : 0, Purpose::scores);
        half_.back().zero();
        bytes_ += elements * static_cast<std::int64_t>(half ? sizeof(sparse::HalfScore) : sizeof(sparse::ScoreElement));
      }
    }
  }

  std::int64_t score_bytes() const { return bytes_; }

  void forward(ScoreMode mode) {
    for (std::size_t side = 0; side < problems_.size(); ++side) {
      if (mode == ScoreMode::none) {
        problems_[side]->forward();
      } else {
        problems_[side]->forward(scores(mode, 2 * side), scores(mode, 2 * side + 1));
      }
    }
  }

 private:
  sparse::TypeScores scores(ScoreMode mode, std::size_t type) {
    if (type_ == ScoreType::fp16) return {mode, nullptr, 1.0f, 0, half_[type].data()};
    return {mode, running_[type].data(), 1.0f, 0};
  }

  ScoreType type_;
  std::vector<std::unique_ptr<AttentionProblem>> problems_;
  std::vector<Buffer<sparse::ScoreElement>> running_;  // only one of the two is used
  std::vector<Buffer<sparse::HalfScore>> half_;
  std::int64_t bytes_ = 0;
};

double seconds_of(const std::function<void()>& work) {
  const double start = bench::processor_seconds();
  work();
  return bench::processor_seconds() - start;
}

void walk(std::vector<std::int32_t>& memory) {
  constexpr std::int64_t kTask = std::int64_t{1} << 18;
  parallel_for(static_cast<std::int64_t>(memory.size()) / kTask, [&](std::int64_t task) {
    for (std::int64_t i = task * kTask; i < (task + 1) * kTask; ++i) ++memory[static_cast<std::size_t>(i)];
  });
}

// Measures one length and number type.
void measure(std::int64_t length, ScoreType type, const Options& options, std::vector<std::int32_t>& memory) {
  Layer layer(length, options.heads, type);
  const double count = static_cast<double>(options.layers);
  // For short texts the extra time is a small difference of larger times, so they are repeated more often.
  const std::int64_t turns = options.repeats * std::max<std::int64_t>(1, 4096 / length);
  const ScoreMode modes[] = {ScoreMode::none, ScoreMode::write, ScoreMode::add, ScoreMode::add_unkept};
  std::vector<double> seconds[std::size(modes)];
  std::vector<double> walks, extra;
  const auto extra_of = [&](const auto& of) {  // of(m): seconds of a layer in mode m
    return of(1) + (count - 2) * of(2) + of(3) - count * of(0);
  };
  for (std::int64_t turn = 0; turn <= turns; ++turn) {
    for (std::size_t m = 0; m < std::size(modes); ++m) {
      const double walked = seconds_of([&] { walk(memory); });
      const double own = seconds_of([&] { layer.forward(modes[m]); });
      if (turn == 0) continue;  // warms up
      walks.push_back(walked);
      seconds[m].push_back(own);
    }
    if (turn > 0) extra.push_back(extra_of([&](int m) { return seconds[m].back(); }));
  }
  const auto least = [](const std::vector<double>& of) { return *std::min_element(of.begin(), of.end()); };
  const double traffic = static_cast<double>(layer.score_bytes()) * (2 + 2 * (count - 2));
  const double limit = traffic * median(walks) / (2.0 * kWalkBytes);
  const double least_limit = traffic * least(walks) / (2.0 * kWalkBytes);
  const double least_extra = extra_of([&](int m) { return least(seconds[m]); });
  std::printf("%8lld %5d %10.1f %12.3f %9.3f %9.3f %7.2f %12.3f %9.3f %9.3f %7.2f\n", static_cast<long long>(length),
              type == ScoreType::fp16 ? 16 : 32, 1e-6 * static_cast<double>(layer.score_bytes()),
              count * median(seconds[0]), median(extra), limit, median(extra) / limit, count * least(seconds[0]),
              least_extra, least_limit, least_extra / least_limit);
  std::fflush(stdout);
}

void measure(const Options& options) {
  std::vector<std::int32_t> memory(kWalkBytes / sizeof(std::int32_t));
  std::printf("%8s %5s %10s %12s %9s %9s %7s %12s %9s %9s %7s\n", "tokens", "bits", "scores MB", "attention s",
              "extra s", "limit s", "of it", "least: att.", "extra s", "limit s", "of it");
  for (const std::int64_t length : options.lengths) {
    for (const ScoreType type : {ScoreType::int32, ScoreType::fp16}) measure(length, type, options, memory);
  }
}

Options parse(int argc, char** argv) {
  Options options;
  bench::read_arguments("bench_scores", argc, argv,
                        {{"--lengths", &options.lengths},
                         {"--heads", &options.heads},
                         {"--repeats", &options.repeats},
                         {"--threads", &options.threads},
                         {"--layers", &options.layers}});
  if (options.layers < 2) fail_usage("bench_scores", "--layers: expected at least 2, got {}", options.layers);
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::bench_main([&] {
    const Options options = parse(argc, argv);
    sparse::register_cpu_kernels();
    set_thread_count(static_cast<int>(options.threads));
    measure(options);
  });
}
