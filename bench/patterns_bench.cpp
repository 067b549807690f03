// Cost of attention against length for each pattern, and of linear attention: time and memory of one layer's operator,
// forward and backward.
//
//   build/cpu/bench_patterns [--lengths 512,2048,8192] [--heads N] [--threads N] [--repeats N] [--names full,…]
//
// One example, heads of 64, window radius 84, causal reach 168, BigBird blocks of 64 with 3 random ones, 266 features.
// CSV: CPU seconds (median), bytes of scratch and of what forward keeps besides its output, columns computed per head
// (0: no pairs). Patterns of one length run in alternation, so that a slow moment affects all of them.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "bench/bench_main.h"
#include "etc_core/base/buffer.h"
#include "etc_core/base/error.h"
#include "etc_core/base/median.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/random.h"
#include "sparse/attention.h"
#include "sparse/patterns/bigbird.h"
#include "sparse/patterns/causal.h"
#include "sparse/performer.h"
#include "sparse/performer_projection.h"
#include "sparse/register_cpu.h"
#include "sparse/self_attention.h"

namespace {

using namespace etc;

constexpr std::int64_t kHeadSize = 64, kFeatures = 266, kRadius = 84;

// q, k, v, dout and the outputs, shared by all patterns of one length.
struct Arrays {
  std::int64_t tokens, heads;
  Buffer<float> inputs[4], results[4], lse;

  Arrays(std::int64_t length, std::int64_t head_count) : tokens(length), heads(head_count) {
    const std::int64_t size = tokens * heads * kHeadSize;
    for (int n = 0; n < 4; ++n) {
      inputs[n] = Buffer<float>(size, Purpose::activations);
      results[n] = Buffer<float>(size, Purpose::activations);
      results[n].zero();
      for (std::int64_t i = 0; i < size; ++i) {
        const auto word = static_cast<std::uint32_t>(i);
        inputs[n][i] = 2.0f * uniform_from_bits(philox({word, 0, 0, 0}, static_cast<std::uint64_t>(n))[0]) - 1.0f;
      }
    }
    lse = Buffer<float>(heads * tokens, Purpose::activations);
  }
  sparse::Rows rows(int n) const { return {inputs[n].data(), heads * kHeadSize, tokens}; }
  sparse::MutableRows to(int n) { return {results[n].data(), heads * kHeadSize, tokens}; }
  sparse::Rows out() const { return {results[0].data(), heads * kHeadSize, tokens}; }
};

struct Item {
  std::string name;
  std::function<void()> forward, backward;
  std::int64_t forward_bytes = 0, backward_bytes = 0, columns = 0;
  std::vector<double> seconds[2] = {};
};

Item pattern_item(const std::string& name, const std::shared_ptr<Arrays>& arrays, sparse::AttentionTiles built) {
  const auto tiles = std::make_shared<const sparse::AttentionTiles>(std::move(built));
  sparse::AttentionInputs in;
  in.heads = arrays->heads;
  in.head_size = kHeadSize;
  in.q = arrays->rows(0);
  in.keys[0] = {arrays->rows(1), arrays->rows(2)};
  in.keys[1] = {{nullptr, arrays->heads * kHeadSize, 0}, {nullptr, arrays->heads * kHeadSize, 0}};
  in.tiles = tiles.get();
  const std::int64_t forward = sparse::attention_forward_scratch_bytes(Device::cpu, in);
  const std::int64_t backward = sparse::attention_backward_scratch_bytes(Device::cpu, in);
  const std::int64_t kept = arrays->heads * arrays->tokens * static_cast<std::int64_t>(sizeof(float));
  return {name,
          [=] {
            Bytes scratch(forward, Purpose::scratch);
            sparse::attention_forward(Device::cpu, {in, {}, arrays->to(0), arrays->lse.data(), scratch.data()});
          },
          [=] {
            Bytes scratch(backward, Purpose::scratch);
            sparse::AttentionBackward args;
            args.inputs = in;
            args.out = arrays->out();
            args.lse = arrays->lse.data();
            args.dout = arrays->rows(3);
            args.dq = arrays->to(1);
            args.dkeys[0] = {arrays->to(2), arrays->to(3)};
            args.dkeys[1] = {{nullptr, in.heads * kHeadSize, 0}, {nullptr, in.heads * kHeadSize, 0}};
            args.scratch = scratch.data();
            sparse::attention_backward(Device::cpu, args);
            static_cast<void>(tiles);  // captured to keep it alive as long as this closure
          },
          forward + kept,
          backward,
          tiles->types[0].columns / tiles->types[0].heads};
}

Item performer_item(const std::string& name, const std::shared_ptr<Arrays>& arrays, bool causal) {
  const auto offsets = std::make_shared<std::vector<std::int64_t>>(std::vector<std::int64_t>{0, arrays->tokens});
  const auto projection = std::make_shared<std::vector<float>>(kFeatures * kHeadSize);
  sparse::draw_projection({kFeatures, kHeadSize}, projection->data());
  const sparse::PerformerInputs in{arrays->heads,   kHeadSize,          kFeatures, arrays->rows(0), arrays->rows(1),
                                   arrays->rows(2), projection->data(), 1,         offsets->data(), offsets->data(),
                                   causal};
  const std::int64_t state_floats = sparse::performer_state_floats(in);
  const auto state = std::make_shared<Buffer<float>>(state_floats, Purpose::activations);
  const std::int64_t forward = sparse::performer_forward_scratch_bytes(Device::cpu, in);
  const std::int64_t backward = sparse::performer_backward_scratch_bytes(Device::cpu, in);
  const std::int64_t kept = (arrays->heads * arrays->tokens + state_floats) * static_cast<std::int64_t>(sizeof(float));
  return {
      name,
      [=] {
        Bytes scratch(forward, Purpose::scratch);
        sparse::performer_forward(Device::cpu, {in, arrays->to(0), arrays->lse.data(), state->data(), scratch.data()});
      },
      [=] {
        Bytes scratch(backward, Purpose::scratch);
        sparse::performer_backward(Device::cpu, {in, arrays->out(), arrays->lse.data(), state->data(), arrays->rows(3),
                                                 arrays->to(1), arrays->to(2), arrays->to(3), scratch.data()});
        static_cast<void>(offsets);  // captured to keep them alive as long as this closure
        static_cast<void>(projection);
      },
      forward + kept,
      backward,
      0};
}

// Creates only the patterns in `names` (empty: all), because the tiles of a long full sequence are large.
std::vector<Item> items_of(std::int64_t length, std::int64_t heads, const std::vector<std::string>& names) {
  const auto arrays = std::make_shared<Arrays>(length, heads);
  const std::vector<std::int64_t> offsets = {0, length};
  sparse::SequenceLabels full, window;
  full.examples = window.examples = 1;
  full.offsets = window.offsets = offsets.data();
  window.radius = kRadius;
  sparse::CausalSequence causal, causal_window;
  causal.examples = causal_window.examples = 1;
  causal.offsets = causal_window.offsets = offsets.data();
  causal_window.reach = 2 * kRadius;
  sparse::BigBirdPattern shared, own;
  own.heads = heads;
  const sparse::BigBirdBatch batch{1, offsets.data(), 0, {}};
  std::vector<Item> items;
  const auto add = [&](const std::string& name, const auto& make) {
    if (names.empty() || std::find(names.begin(), names.end(), name) != names.end()) items.push_back(make(name));
  };
  const auto pattern = [&](const auto& build) {
    return [&, build](const std::string& name) { return pattern_item(name, arrays, build()); };
  };
  add("full", pattern([&] { return sparse::build_self_tiles(full); }));
  add("causal", pattern([&] { return sparse::build_causal_tiles(causal); }));
  add("window", pattern([&] { return sparse::build_self_tiles(window); }));
  add("causal window", pattern([&] { return sparse::build_causal_tiles(causal_window); }));
  add("bigbird", pattern([&] { return sparse::build_bigbird_tiles(shared, batch); }));
  add("bigbird of each head", pattern([&] { return sparse::build_bigbird_tiles(own, batch); }));
  add("performer", [&](const std::string& name) { return performer_item(name, arrays, false); });
  add("causal performer", [&](const std::string& name) { return performer_item(name, arrays, true); });
  return items;
}

// CPU time of the process, all threads together, with nanosecond resolution.
double processor_now() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds_of(const std::function<void()>& run) {
  const double start = processor_now();
  run();
  return processor_now() - start;
}

struct Options {
  std::vector<std::int64_t> lengths = {512, 2048, 8192};
  std::int64_t heads = 12, repeats = 5;
  std::vector<std::string> names;  // of the patterns to measure; none: all
};

Options parse(int argc, char** argv) {
  Options options;
  int threads = thread_count();
  bench::read_arguments("bench_patterns", argc, argv,
                        {{"--lengths", &options.lengths},
                         {"--heads", &options.heads},
                         {"--threads", &threads},
                         {"--repeats", &options.repeats},
                         {"--names", &options.names}});
  set_thread_count(threads);
  return options;
}

void run(const Options& options) {
  sparse::register_cpu_kernels();
  std::printf("pattern,tokens,heads,threads,forward_s,backward_s,forward_bytes,backward_bytes,columns\n");
  for (const std::int64_t length : options.lengths) {
    std::vector<Item> items = items_of(length, options.heads, options.names);
    for (std::int64_t repeat = 0; repeat < options.repeats; ++repeat) {
      for (Item& item : items) {
        item.seconds[0].push_back(seconds_of(item.forward));
        item.seconds[1].push_back(seconds_of(item.backward));
      }
    }
    for (const Item& item : items) {
      std::printf("\"%s\",%ld,%ld,%d,%.5f,%.5f,%ld,%ld,%ld\n", item.name.c_str(), static_cast<long>(length),
                  static_cast<long>(options.heads), thread_count(), median(item.seconds[0]), median(item.seconds[1]),
                  static_cast<long>(item.forward_bytes), static_cast<long>(item.backward_bytes),
                  static_cast<long>(item.columns));
    }
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return bench::bench_main([&] { run(parse(argc, argv)); });
}
