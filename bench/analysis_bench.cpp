// The cost of attention statistics: a forward pass of a base encoder with the statistics of every layer
// (etc_core/nn/attention_analysis.h) compared with the same pass without them, and the cost of each part.
//   bench_analysis [--repeats N] [--threads N] [--layers N] [--tokens N]      default 3, 1, 12 and 4096
// 12 heads of 64, radius 84, one global token per 18 long ones, without and with carried scores (running sum). Every
// line is warmed up once, then all run in alternation; medians of CPU seconds. The last column is relative to the
// ordinary pass of the same encoder. "statistics" are those of `etc analyze --groups all`; the lines below it leave out
// one part or add one.
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "bench/bench_main.h"
#include "bench/processor_time.h"
#include "etc_core/autograd/tape.h"
#include "etc_core/base/median.h"
#include "etc_core/base/parallel.h"
#include "etc_core/nn/attention_analysis.h"
#include "etc_core/nn/etc_encoder.h"
#include "etc_core/nn/random_input.h"
#include "etc_core/ops/register.h"
#include "sparse/etc_attention.h"
#include "sparse/register_cpu.h"

namespace {

using namespace etc;

constexpr std::int64_t kTokensPerGlobal = 18;
constexpr std::int64_t kVocabulary = 30522;
constexpr int kGroups = 6;  // the groups that etc analyze has names for
constexpr std::int64_t kTop = 16;

struct Setup {
  std::int64_t repeats = 3, threads = 1, layers = 12, tokens = 4096;
};

// An encoder and its input.
struct Model {
  EtcConfig config = etc_config_preset("base");
  ParameterSet parameters;
  std::unique_ptr<EtcEncoder> encoder;
  EncoderInput input;

  Model(const Setup& setup, bool scores) {
    config.vocab_size = kVocabulary;
    config.num_hidden_layers = setup.layers;
    config.use_residual_attention = scores;
    encoder = std::make_unique<EtcEncoder>(config, parameters);
    parameters.initialize(1);
    encoder->release_kernels();
    input = random_input(config, setup.tokens, kTokensPerGlobal);
  }
};

QueryGroups in_all_groups(std::int64_t queries) {
  return {kGroups, std::vector<std::uint8_t>(static_cast<std::size_t>(queries), (1u << kGroups) - 1)};
}

// One way of running the pass.
struct Line {
  std::string name;
  const Model* model;
  std::function<void(AnalysisSettings& settings)> ask;  // null: the ordinary pass
  std::vector<double> seconds = {};

  void run() const {
    AnalysisSettings settings;
    settings.reach = model->config.local_radius;
    if (ask) ask(settings);
    AttentionAnalysis analysis(settings, [](const LayerStatistics&) {});
    ForwardOptions options;
    if (ask) options.attention_watch = std::ref(analysis);
    Tape tape(Recording::off);
    model->encoder->forward(tape, model->input, options);
  }
};

std::vector<Line> lines_of(const Model& model, const std::string& scores) {
  const auto line = [&](const char* name, std::function<void(AnalysisSettings&)> ask) {
    return Line{scores + name, &model, std::move(ask)};
  };
  const auto groups = [&model](const sparse::AttentionOperator* op) {
    const auto& offsets = op == &sparse::kLongAttention ? model.input.long_offsets : model.input.global_offsets;
    return in_all_groups(offsets.back());
  };
  return {line("ordinary", nullptr),
          line("statistics", [](AnalysisSettings&) {}),
          line("without divergences", [](AnalysisSettings& s) { s.divergences = false; }),
          line("without sums by label", [](AnalysisSettings& s) { s.label_mass = false; }),
          line("without sums by distance", [](AnalysisSettings& s) { s.distance_mass = false; }),
          line("none of these", [](AnalysisSettings& s) { s.divergences = s.label_mass = s.distance_mass = false; }),
          line("with 16 keys of each query", [](AnalysisSettings& s) { s.top = kTop; }),
          line("in six query groups", [groups](AnalysisSettings& s) { s.groups_of = groups; })};
}

void measure(const Setup& setup) {
  const Model plain(setup, false), carrying(setup, true);
  std::vector<Line> lines = lines_of(plain, "");
  for (Line& line : lines_of(carrying, "scores, ")) lines.push_back(std::move(line));
  for (std::int64_t turn = 0; turn <= setup.repeats; ++turn) {
    for (Line& line : lines) {
      const double start = bench::processor_seconds();
      line.run();
      if (turn > 0) line.seconds.push_back(bench::processor_seconds() - start);
    }
  }
  double ordinary = 0;
  for (const Line& line : lines) {
    const double own = median(line.seconds);
    if (!line.ask) ordinary = own;
    std::printf("%-36s %8.3f s %7.3f of the ordinary pass\n", line.name.c_str(), own, own / ordinary);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return bench::bench_main([&] {
    Setup setup;
    bench::read_arguments("bench_analysis", argc, argv,
                          {{"--repeats", &setup.repeats},
                           {"--threads", &setup.threads},
                           {"--layers", &setup.layers},
                           {"--tokens", &setup.tokens}});
    ops::register_cpu_ops();
    sparse::register_cpu_kernels();
    set_thread_count(static_cast<int>(setup.threads));
    measure(setup);
  });
}
