// Patterns and linear attention against dense_reference.h5, group `attention`.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "etc_core/base/buffer.h"
#include "sparse/attention.h"
#include "sparse/patterns/bigbird.h"
#include "sparse/patterns/causal.h"
#include "sparse/patterns/cross.h"
#include "sparse/performer.h"
#include "sparse/register_cpu.h"
#include "tests/reference/performer.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"
#include "tests/support/h5_edit.h"
#include "tests/support/worst.h"

namespace etc::test {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

// The worst difference, in units of the tolerance in the file's README, and the number of compared data sets.
struct Difference {
  double worst = 0;
  std::string where;
  std::size_t data_sets = 0;

  template <typename Actual>
  void compare(const std::string& name, const Doubles& expected, const std::vector<Actual>& actual, double tolerance) {
    INFO(name);
    REQUIRE(expected.size() == actual.size());
    ++data_sets;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double before = worst;
      keep_worst(worst, in_tolerances(static_cast<double>(actual[i]), expected[i], tolerance, tolerance));
      if (worst != before) where = name;
    }
  }
};

constexpr double kForward = 2e-5, kGradient = 1e-4, kReference = 1e-10;

// Rows [n, H, d] from the file's [H, n, d], and back.
template <typename T>
std::vector<T> rows_of(const GoldenArray<T>& array) {
  const auto H = static_cast<std::size_t>(array.shape.at(0)), n = static_cast<std::size_t>(array.shape.at(1)),
             d = static_cast<std::size_t>(array.shape.at(2));
  std::vector<T> rows(array.values.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[(i / d % n * H + i / d / n) * d + i % d] = array.values[i];
  return rows;
}

// One attention problem of a file: Q, K, V of one example.
struct Problem {
  std::int64_t heads, queries, keys, size;
  Floats q, k, v;

  Problem(const GoldenFile& file, const std::string& group) {
    const auto of_q = file.read<float>(group + "/param/Q"), of_k = file.read<float>(group + "/param/K");
    heads = of_q.shape.at(0);
    queries = of_q.shape.at(1);
    size = of_q.shape.at(2);
    keys = of_k.shape.at(1);
    q = rows_of(of_q);
    k = rows_of(of_k);
    v = rows_of(file.read<float>(group + "/param/V"));
  }
  sparse::Rows rows(const Floats& values, std::int64_t count) const { return {values.data(), heads * size, count}; }
  sparse::MutableRows rows(Floats& values, std::int64_t count) const {
    values.assign(static_cast<std::size_t>(count * heads * size), NAN);
    return {values.data(), heads * size, count};
  }
};

struct Attended {
  Floats out, dq, dk, dv;
};

// Forward pass and, with an upstream gradient, backward pass for tiles without additional score terms.
Attended attend(const Problem& p, const sparse::AttentionTiles& tiles, const Floats& upstream) {
  Attended result;
  sparse::AttentionInputs in;
  in.heads = p.heads;
  in.head_size = p.size;
  in.q = p.rows(p.q, p.queries);
  in.keys[0] = {p.rows(p.k, tiles.types[0].keys()), p.rows(p.v, tiles.types[0].keys())};
  in.keys[1] = {{nullptr, p.heads * p.size, 0}, {nullptr, p.heads * p.size, 0}};
  in.tiles = &tiles;
  Floats lse(static_cast<std::size_t>(p.heads * p.queries));
  Bytes forward(sparse::attention_forward_scratch_bytes(Device::cpu, in), Purpose::scratch);
  sparse::attention_forward(Device::cpu, {in, {}, p.rows(result.out, p.queries), lse.data(), forward.data()});
  if (upstream.empty()) return result;
  sparse::AttentionBackward args;
  args.inputs = in;
  args.out = p.rows(std::as_const(result.out), p.queries);
  args.lse = lse.data();
  args.dout = p.rows(upstream, p.queries);
  args.dq = p.rows(result.dq, p.queries);
  Floats none_k, none_v;
  args.dkeys[0] = {p.rows(result.dk, tiles.types[0].keys()), p.rows(result.dv, tiles.types[0].keys())};
  args.dkeys[1] = {p.rows(none_k, 0), p.rows(none_v, 0)};
  Bytes backward(sparse::attention_backward_scratch_bytes(Device::cpu, in), Purpose::scratch);
  args.scratch = backward.data();
  sparse::attention_backward(Device::cpu, args);
  return result;
}

// [queries, keys] of one example: 1 where a pair is visible.
std::vector<int> mask_of(const sparse::TypeTiles& tiles) {
  const std::int64_t queries = tiles.queries(), keys = tiles.keys();
  std::vector<int> mask(static_cast<std::size_t>(queries * keys), 0);
  for (std::int64_t g = 0; g < tiles.group_offsets.back(); ++g) {
    for (std::int64_t r = tiles.run_offsets[g]; r < tiles.run_offsets[g + 1]; ++r) {
      for (std::int64_t j = 0; j < tiles.runs[r].keys; ++j) {
        for (std::int64_t i = 0; i < sparse::kGroup; ++i) {
          if (((tiles.visible[tiles.runs[r].column + j] >> i) & 1) == 0) continue;
          mask[static_cast<std::size_t>((g * sparse::kGroup + i) * keys + tiles.runs[r].first_key + j)] = 1;
        }
      }
    }
  }
  return mask;
}

void compare_bigbird(const GoldenFile& file, Difference& difference) {
  const std::string group = "attention/bigbird";
  const Problem p(file, group);
  const auto random = file.read<std::int64_t>(group + "/random_blocks");
  sparse::BigBirdPattern pattern;
  pattern.block_size = file.int_attribute(group, "block_size");
  pattern.random_blocks = random.shape.at(1);
  REQUIRE(file.int_attribute(group, "num_blocks") * pattern.block_size == p.keys);
  const std::vector<std::int64_t> offsets = {0, p.queries};
  sparse::BigBirdBatch batch{1, offsets.data(), 0, [&](const sparse::BigBirdRow& row) {
                               const auto first = random.values.begin() + (row.row - 1) * pattern.random_blocks;
                               return std::vector<std::int64_t>(first, first + pattern.random_blocks);
                             }};
  const Doubles mask = file.read<double>(group + "/mask").values;
  const Doubles output = rows_of(file.read<double>(group + "/output"));
  // One pattern for all heads, and the same pattern given for each head.
  for (const std::int64_t heads : {std::int64_t{1}, p.heads}) {
    pattern.heads = heads;
    const sparse::AttentionTiles tiles = sparse::build_bigbird_tiles(pattern, batch);
    if (heads == 1) difference.compare(group + "/mask", mask, mask_of(tiles.types[0]), kForward);
    difference.compare(group + "/output", output, attend(p, tiles, {}).out, kForward);
  }
}

// In `plain` the last key is masked, which must equal attention to a sequence without it.
void compare_cross(const GoldenFile& file, Difference& difference) {
  const std::string group = "attention/plain";
  const Problem p(file, group);
  const Doubles mask = file.read<double>(group + "/mask").values;
  std::int64_t seen = 0;
  while (seen < p.keys && mask[static_cast<std::size_t>(seen)] != 0) ++seen;
  std::vector<int> expected;
  for (std::int64_t i = 0; i < p.queries * p.keys; ++i) expected.push_back(i % p.keys < seen ? 1 : 0);
  difference.compare(group + "/mask", mask, expected, kForward);
  const std::vector<std::int64_t> queries = {0, p.queries}, keys = {0, seen};
  const Attended result = attend(p, sparse::build_cross_tiles({1, queries.data(), keys.data()}),
                                 rows_of(file.read<float>(group + "/upstream")));
  difference.compare(group + "/output", rows_of(file.read<double>(group + "/output")), result.out, kForward);
  const auto whole = [&](Floats gradient) {  // the masked key's gradient is 0
    gradient.resize(static_cast<std::size_t>(p.keys * p.heads * p.size), 0.0f);
    return gradient;
  };
  difference.compare(group + "/grad/Q", rows_of(file.read<double>(group + "/grad/Q")), result.dq, kGradient);
  difference.compare(group + "/grad/K", rows_of(file.read<double>(group + "/grad/K")), whole(result.dk), kGradient);
  difference.compare(group + "/grad/V", rows_of(file.read<double>(group + "/grad/V")), whole(result.dv), kGradient);
}

// Compares only the masks of causal cases, with and without memory, because their scores have additional terms.
void compare_causal(const GoldenFile& file, Difference& difference) {
  for (const std::string& name : file.groups("attention")) {
    if (name.find("causal") == std::string::npos) continue;
    const auto mask = file.read<double>("attention/" + name + "/mask");
    const std::vector<std::int64_t> queries = {0, mask.shape.at(0)}, keys = {0, mask.shape.at(1)};
    const sparse::AttentionTiles tiles = sparse::build_causal_tiles({1, queries.data(), keys.data()});
    difference.compare("attention/" + name + "/mask", mask.values, mask_of(tiles.types[0]), kForward);
  }
}

Floats performer_output(const Problem& p, const Floats& projection, bool causal, bool stabilised) {
  const std::vector<std::int64_t> offsets = {0, p.queries};
  sparse::PerformerInputs in{p.heads,
                             p.size,
                             static_cast<std::int64_t>(projection.size()) / p.size,
                             p.rows(p.q, p.queries),
                             p.rows(p.k, p.keys),
                             p.rows(p.v, p.keys),
                             projection.data(),
                             1,
                             offsets.data(),
                             offsets.data(),
                             causal,
                             stabilised};
  Buffer<float> state(sparse::performer_state_floats(in), Purpose::activations);
  Bytes scratch(sparse::performer_forward_scratch_bytes(Device::cpu, in), Purpose::scratch);
  Floats out, denominators(static_cast<std::size_t>(p.heads * p.queries));
  sparse::performer_forward(Device::cpu,
                            {in, p.rows(out, p.queries), denominators.data(), state.data(), scratch.data()});
  return out;
}

void compare_performer(const GoldenFile& file, Difference& difference) {
  const std::string group = "attention/performer";
  const Problem p(file, group);
  const auto projection = file.read<float>(group + "/projection");
  reference::Performer reference{p.heads, p.size, projection.shape.at(0), {0, p.queries}, {0, p.keys}, {}, {}, {}, {}};
  reference.q = rows_of(file.read<double>(group + "/param/Q"));
  reference.k = rows_of(file.read<double>(group + "/param/K"));
  reference.v = rows_of(file.read<double>(group + "/param/V"));
  reference.projection = file.read<double>(group + "/projection").values;
  for (const bool stabilised : {false, true}) {
    const std::string part = group + (stabilised ? "/stabilised" : "/exact");
    const auto read = [&](const char* name) { return rows_of(file.read<double>(part + "/" + name)); };
    reference.stabilised = stabilised;
    difference.compare(part + "/query_features", read("query_features"), reference::query_features(reference),
                       kReference);
    difference.compare(part + "/key_features", read("key_features"), reference::key_features(reference), kReference);
    for (const bool causal : {false, true}) {
      const char* const name = causal ? "output_causal" : "output";
      reference.causal = causal;
      difference.compare(part + "/" + name, read(name), reference::performer(reference), kReference);
      difference.compare(part + "/" + name, read(name), performer_output(p, projection.values, causal, stabilised),
                         kForward);
    }
  }
  // What the features estimate: attention to all keys.
  const std::vector<std::int64_t> queries = {0, p.queries}, keys = {0, p.keys};
  const Attended full = attend(p, sparse::build_cross_tiles({1, queries.data(), keys.data()}), {});
  difference.compare(group + "/softmax_output", rows_of(file.read<double>(group + "/softmax_output")), full.out,
                     kForward);
}

Difference compare_patterns(const GoldenFile& file) {
  Difference difference;
  compare_bigbird(file, difference);
  compare_cross(file, difference);
  compare_causal(file, difference);
  compare_performer(file, difference);
  return difference;
}

// The golden files that have patterns.
std::vector<std::filesystem::path> pattern_files() {
  std::vector<std::filesystem::path> files;
  for (const std::filesystem::path& path : golden_files(".h5")) {
    if (GoldenFile(path).has("attention/bigbird")) files.push_back(path);
  }
  if (files.empty()) std::printf("skipped: no golden files with a group attention/bigbird\n");
  return files;
}

// Every compared data set: the test changes its largest number by a thousandth, or to 0 in a mask or block.
std::vector<std::string> compared_data_sets(const GoldenFile& file) {
  std::vector<std::string> names = {"attention/bigbird/mask",          "attention/bigbird/output",
                                    "attention/bigbird/random_blocks", "attention/plain/mask",
                                    "attention/plain/output",          "attention/plain/grad/Q",
                                    "attention/plain/grad/K",          "attention/plain/grad/V",
                                    "attention/performer/projection",  "attention/performer/softmax_output"};
  for (const std::string& name : file.groups("attention")) {
    if (name.find("causal") != std::string::npos) names.push_back("attention/" + name + "/mask");
  }
  for (const char* part : {"exact", "stabilised"}) {
    for (const char* name : {"query_features", "key_features", "output", "output_causal"}) {
      names.push_back(std::string("attention/performer/") + part + "/" + name);
    }
  }
  return names;
}

TEST_CASE("patterns and linear attention have the masks, features, outputs and gradients of the formulas", "[golden]") {
  sparse::register_cpu_kernels();
  for (const std::filesystem::path& path : pattern_files()) {
    const GoldenFile file(path);
    const Difference difference = compare_patterns(file);
    for (const char* const group : {"attention/bigbird", "attention/performer"}) file.require_all_read(group);
    CAPTURE(path.filename().string(), difference.where);
    CHECK(difference.worst <= 1);
    CHECK(difference.data_sets >= 20);
    std::printf("%s: %d comparisons of patterns: %.3f of what is tolerated (%s)\n", path.filename().c_str(),
                static_cast<int>(difference.data_sets), difference.worst, difference.where.c_str());
  }
}

TEST_CASE("a changed number of a pattern's golden file is noticed", "[golden]") {
  sparse::register_cpu_kernels();
  for (const std::filesystem::path& path : pattern_files()) {
    for (const std::string& name : compared_data_sets(GoldenFile(path))) {
      CAPTURE(name);
      const TemporaryFolder folder;
      const std::filesystem::path copy = folder / path.filename().string();
      std::filesystem::copy_file(path, copy);
      const Doubles values = GoldenFile(copy).read<double>(name).values;
      const auto larger = [](double a, double b) { return std::fabs(a) < std::fabs(b); };
      const auto largest = std::max_element(values.begin(), values.end(), larger) - values.begin();
      const bool whole = name.ends_with("mask") || name.ends_with("blocks");
      H5Edit(copy).scale_element("/" + name, largest, whole ? 0.0 : 1.001);
      CHECK(compare_patterns(GoldenFile(copy)).worst > 1);
    }
  }
}

}  // namespace
}  // namespace etc::test
