// Speed of the two sparse operators, compared with the usual alternative (oneDNN's batched GEMM on window blocks) and
// with the machine's rate on a large GEMM. All lines of one thread count are measured in one interleaved run, so that a
// slow moment of the machine affects all of them.
//
//   build/cpu/bench_attention [--csv] [--cpu-time] [--repeats N] [--threads 1,2] [--length L] [--only TEXT]
//
// --cpu-time measures the CPU time of all threads divided by their number instead of wall time; on a shared machine
// this leaves out the time of other programs. --only measures the lines whose name contains TEXT. GFLOP/s counts useful
// operations only: 2*D per visible pair and product, 2 products forward, 5 backward (4 when scores carry p and nothing
// is rewound). Masked pairs, softmax, labels, q·rel and scores cost time but count nothing. The GEMMs of oneDNN do not
// include softmax, masks and the gathering of blocks.

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "bench/bench_main.h"
#include "bench/cases/attention.h"
#include "bench/cases/bf16_rows.h"
#include "bench/library_product.h"
#include "etc_core/base/cpu_features.h"
#include "etc_core/base/error.h"
#include "etc_core/base/integers.h"
#include "etc_core/base/median.h"
#include "etc_core/base/parallel.h"
#include "sparse/labels/distance_maps.h"
#include "sparse/register_cpu.h"
#include "sparse/scores.h"

namespace {

using namespace etc;
using bench::AttentionCase;
using bench::AttentionProblem;
using bench::BatchedLibraryProduct;
using bench::BatchedShape;
using bench::Labels;
using bench::Side;
using bench::Structure;
using sparse::ScoreGradientMode;
using sparse::ScoreMode;

struct Item {
  std::string name;
  std::function<double()> operations;
  std::function<void()> run;
  std::vector<double> seconds;
};

// A line's problem is created on its first run, so that --only does not create the others.
template <typename T>
std::function<T&()> made_when_used(std::function<std::shared_ptr<T>()> make) {
  const auto made = std::make_shared<std::shared_ptr<T>>();
  return [=]() -> T& {
    if (*made == nullptr) *made = make();
    return **made;
  };
}

// The machine's rate: a 2048 x 2048 x 2048 GEMM with weights in oneDNN's preferred layout.
Item large_product() {
  constexpr std::int64_t kSize = 2048;
  const auto x = std::make_shared<std::vector<float>>(kSize * kSize, 1e-3f);
  const auto y = std::make_shared<std::vector<float>>(kSize * kSize);
  auto product = std::make_shared<bench::LibraryProduct>(kSize, kSize, kSize, x->data());
  return {"oneDNN 2048x2048x2048",
          [] { return 2.0 * kSize * kSize * kSize; },
          [=] { product->run(x->data(), y->data()); },
          {}};
}

// The GEMMs of windowed attention with the reference's blocking: queries in blocks of radius+1, keys in three such
// blocks; global keys as a dense GEMM per head. Forward: q·k, p·v. Backward: these and dp, dq, dk, dv without the
// second p·v.
Item blocked_products(const AttentionCase& c, const std::shared_ptr<const Structure>& structure, bool backward) {
  using Products = std::vector<std::shared_ptr<BatchedLibraryProduct>>;
  const auto products = made_when_used<Products>([=] {
    const std::int64_t block = c.radius + 1, blocks = ceil_div(c.lengths[0], block), d = c.head_size;
    const auto made = std::make_shared<Products>();
    const auto make = [&](const BatchedShape& shape) {
      made->push_back(std::make_shared<BatchedLibraryProduct>(shape));
    };
    const auto add = [&](std::int64_t batch, std::int64_t queries, std::int64_t keys) {
      make({batch, queries, keys, d, false, true});   // q·k
      make({batch, queries, d, keys, false, false});  // p·v, or dq
      if (!backward) return;
      make({batch, queries, keys, d, false, true});  // dp
      make({batch, keys, d, queries, true, false});  // dk
      make({batch, keys, d, queries, true, false});  // dv
    };
    add(c.heads * blocks, block, 3 * block);
    if (c.globals[0] > 0) add(c.heads, c.lengths[0], c.globals[0]);
    return made;
  });
  return {backward ? "oneDNN products on window blocks, backward" : "oneDNN products on window blocks, forward",
          [=] { return AttentionProblem(c, structure, Side::long_side).useful_operations(backward ? 5 : 2); },
          [=] {
            for (const auto& product : products()) product->run();
          },
          {}};
}

// One operator with running scores of both types. Problem: an AttentionProblem, or a Bf16Problem made of one.
template <typename Problem>
struct ScoredProblem {
  Problem problem;
  Buffer<sparse::ScoreElement> running[2];
  Buffer<float> gradient[2];

  explicit ScoredProblem(AttentionProblem&& of) : problem(std::move(of)) {
    const AttentionProblem& sizes = problem_of(problem);
    for (int t = 0; t < 2; ++t) {
      const std::int64_t elements = sparse::score_elements(sizes.tiles(t), sizes.setup.heads);
      running[t] = Buffer<sparse::ScoreElement>(elements, Purpose::scores);
      gradient[t] = Buffer<float>(elements, Purpose::scores);
      running[t].zero();
      gradient[t].zero();
    }
  }
  void forward(ScoreMode mode) {
    problem.forward({mode, running[0].data(), 1.0f, 0}, {mode, running[1].data(), 1.0f, 0});
  }
  static const AttentionProblem& problem_of(const AttentionProblem& own) { return own; }
  static const AttentionProblem& problem_of(const bench::Bf16Problem& own) { return own.problem; }
  // Every timed step restores C: a forward that adds is followed by a backward that rewinds.
  void backward(ScoreGradientMode mode, bool rewind) {
    problem.backward({mode, running[0].data(), gradient[0].data(), 1.0f, rewind, 0},
                     {mode, running[1].data(), gradient[1].data(), 1.0f, rewind, 0});
  }
};

// Adds the lines of one problem: forward (two products of a pair) and backward (five).
struct Lines {
  std::vector<Item>& items;
  std::string name;
  std::function<AttentionProblem&()> counted;

  void add(const std::string& what, double products, std::function<void()> run) const {
    items.push_back(
        {name + what, [of = counted, products] { return of().useful_operations(1) * products; }, std::move(run), {}});
  }
};

void add_operator(std::vector<Item>& items, const AttentionCase& c, const std::shared_ptr<const Structure>& structure,
                  Side side) {
  using Scored = ScoredProblem<AttentionProblem>;
  using Bf16Scored = ScoredProblem<bench::Bf16Problem>;
  const std::string name = std::string(side == Side::long_side ? "long" : "global") + ", " + c.name + ": ";
  const auto plain =
      made_when_used<AttentionProblem>([=] { return std::make_shared<AttentionProblem>(c, structure, side); });
  const auto scored = made_when_used<Scored>([=] {
    auto made = std::make_shared<Scored>(AttentionProblem(c, structure, side));
    made->forward(ScoreMode::write);
    made->forward(ScoreMode::add);
    return made;
  });
  const Lines lines{items, name, plain};
  lines.add("forward", 2, [=] { plain().forward(); });
  lines.add("backward", 5, [=] { plain().backward(); });
  if (cpu_has_avx512(ComputeType::bf16)) {
    AttentionCase reduced = c;
    reduced.compute = ComputeType::bf16;
    // Rows in bf16, the output type of an encoder's GEMMs.
    const auto bf16 = made_when_used<bench::Bf16Problem>(
        [=] { return std::make_shared<bench::Bf16Problem>(AttentionProblem(reduced, structure, side)); });
    const auto bf16_scored = made_when_used<Bf16Scored>([=] {
      auto made = std::make_shared<Bf16Scored>(AttentionProblem(reduced, structure, side));
      made->forward(ScoreMode::write);
      made->forward(ScoreMode::add);
      return made;
    });
    lines.add("forward, bf16", 2, [=] { bf16().forward(); });
    lines.add("forward, bf16, scores add", 2, [=] { bf16_scored().forward(ScoreMode::add); });
    lines.add("backward, bf16", 5, [=] { bf16().backward(); });
    lines.add("backward, bf16, scores inner, rewind", 5,
              [=] { bf16_scored().backward(ScoreGradientMode::inner, true); });
  }
  lines.add("forward, scores add_unkept", 2, [=] { scored().forward(ScoreMode::add_unkept); });
  lines.add("forward, scores write", 2, [=] { scored().forward(ScoreMode::write); });
  lines.add("forward, scores add", 2, [=] { scored().forward(ScoreMode::add); });
  lines.add("forward, scores read", 1, [=] { scored().forward(ScoreMode::read); });
  lines.add("backward, scores inner, rewind", 5, [=] { scored().backward(ScoreGradientMode::inner, true); });
  lines.add("backward, scores first, no rewind", 4, [=] { scored().backward(ScoreGradientMode::first, false); });
}

struct Options {
  bool csv = false;
  bool cpu_time = false;
  std::string only;
  int repeats = 7;
  std::vector<int> threads = {1, 2};
  std::int64_t length = 4096;
};

// The cost of dropout, and the one-time cost of a batch's tiles.
void add_extras(std::vector<Item>& items, const AttentionCase& c, const std::shared_ptr<const Structure>& structure) {
  AttentionCase dropped = c;
  dropped.dropout = 0.1f;
  const auto problem = made_when_used<AttentionProblem>(
      [=] { return std::make_shared<AttentionProblem>(dropped, structure, Side::long_side); });
  const Lines lines{items, "long, " + c.name + ": ", problem};
  lines.add("forward, dropout 0.1", 2, [=] { problem().forward(); });
  lines.add("backward, dropout 0.1", 5, [=] { problem().backward(); });
  items.push_back({c.name + ": tiles of both operators from labels",
                   [] { return 0.0; },
                   [structure] { structure->build_tiles(); },
                   {}});
}

// The cost that position methods of dense encoders add to full attention over 512 tokens.
void add_terms(std::vector<Item>& items) {
  const std::int64_t length = 512;
  const AttentionCase plain{"512 tokens", {length}, {0}, length - 1, 12, 64, 0, Labels::none};
  struct Method {
    const char* name;
    sparse::DistanceMap map;
    bench::RelativeParts parts;  // vectors, biases, key_vectors, factors, products, value_vectors
  };
  // Shaw et al. clip at 16, NEZHA, whose keys and values are the same, at 64.
  const sparse::DistanceMap near = sparse::clipped_distances(16), clipped = sparse::clipped_distances(64);
  const sparse::DistanceMap all = sparse::clipped_distances(length - 1);
  const std::vector<Method> methods = {
      {"plain", {}, {}},
      {"Shaw, k=16", near, {true, false}},
      {"Shaw and values, k=16", near, {true, false, false, false, false, true}},
      {"Shaw, k=64", clipped, {true, false}},
      {"Shaw and values, k=64", clipped, {true, false, false, false, false, true}},
      {"T5", sparse::t5_distances({}), {false, true}},
      {"Transformer-XL", all, {true, true}},
      {"Huang 1", sparse::undirected_distances(length - 1), {false, false, false, true}},
      {"Huang 3, k=16", near, {false, false, false, false, true}},
      {"Huang 3, unclipped", all, {false, false, false, false, true}},
      {"Huang 4, k=16", near, {true, false, true}},
      {"Huang 4, unclipped", all, {true, false, true}},
  };
  for (const Method& method : methods) {
    AttentionCase c = plain;
    c.distances = method.map;
    c.parts = method.parts;
    for (const std::uint32_t row : method.map.rows)
      c.relative_labels = std::max<std::int64_t>(c.relative_labels, row + 1);
    const auto problem = made_when_used<AttentionProblem>(
        [=] { return std::make_shared<AttentionProblem>(c, std::make_shared<const Structure>(c), Side::long_side); });
    const Lines lines{items, std::string("terms, ") + method.name + ": ", problem};
    lines.add("forward", 2, [=] { problem().forward(); });
    lines.add("backward", 5, [=] { problem().backward(); });
  }
}

double now(bool cpu_time, int threads) {
  timespec time{};
  clock_gettime(cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return (static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec)) / (cpu_time ? threads : 1);
}

void measure(std::vector<Item>& items, const Options& options, int threads) {
  for (Item& item : items) item.run();  // warm-up
  for (int r = 0; r < options.repeats; ++r) {
    for (Item& item : items) {
      const double start = now(options.cpu_time, threads);
      item.run();
      item.seconds.push_back(now(options.cpu_time, threads) - start);
    }
  }
}

void print(const std::vector<Item>& items, int threads, bool csv) {
  const double rate = items[0].operations() / median(items[0].seconds);
  if (!csv)
    std::printf("\n%d thread%s%51s %9s %9s %9s %6s\n", threads, threads == 1 ? " " : "s", "ms", "min", "max", "GFLOP/s",
                "rate");
  for (const Item& item : items) {
    const double middle = median(item.seconds);
    const auto [low, high] = std::minmax_element(item.seconds.begin(), item.seconds.end());
    const double rate_here = item.operations() / middle, gigaflops = rate_here * 1e-9,
                 percent = 100.0 * rate_here / rate;
    if (csv) {
      std::printf("%d,\"%s\",%.6f,%.6f,%.6f,%.2f,%.2f\n", threads, item.name.c_str(), middle, *low, *high, gigaflops,
                  percent);
    } else {
      std::printf("%-56s %7.2f %9.2f %9.2f %9.1f %5.0f%%\n", item.name.c_str(), middle * 1e3, *low * 1e3, *high * 1e3,
                  gigaflops, percent);
    }
  }
}

Options parse(int argc, char** argv) {
  Options options;
  bench::read_arguments("bench_attention", argc, argv,
                        {{"--csv", &options.csv},
                         {"--cpu-time", &options.cpu_time},
                         {"--repeats", &options.repeats},
                         {"--only", &options.only},
                         {"--length", &options.length},
                         {"--threads", &options.threads}});
  return options;
}

void run(const Options& options) {
  sparse::register_cpu_kernels();
  const std::int64_t length = options.length;
  const AttentionCase with_globals{"230 globals", {length}, {230}, 84, 12, 64, 32, Labels::document};
  const AttentionCase window_only{"window only", {length}, {0}, 84, 12, 64, 32, Labels::document};
  const AttentionCase hard{"hard g2l", {length}, {230}, 84, 12, 64, 32, Labels::hard};
  if (options.csv) std::printf("threads,what,median_s,min_s,max_s,gflops,percent_of_large_product\n");
  for (int threads : options.threads) {
    set_thread_count(threads);
    std::vector<Item> items = {large_product()};
    for (const AttentionCase& c : {window_only, with_globals}) {
      const auto structure = std::make_shared<const Structure>(c);
      items.push_back(blocked_products(c, structure, false));
      items.push_back(blocked_products(c, structure, true));
      add_operator(items, c, structure, Side::long_side);
      if (c.globals[0] > 0) add_extras(items, c, structure);
    }
    for (const AttentionCase& c : {with_globals, hard}) {
      add_operator(items, c, std::make_shared<const Structure>(c), Side::global_side);
    }
    add_terms(items);
    items.erase(std::remove_if(items.begin() + 1, items.end(),
                               [&](const Item& item) { return item.name.find(options.only) == std::string::npos; }),
                items.end());
    measure(items, options, threads);
    print(items, threads, options.csv);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return etc::bench::bench_main([&] { run(parse(argc, argv)); });
}
