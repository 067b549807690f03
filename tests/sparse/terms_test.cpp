// Properties of relative terms and of labels by distance (relative-positions 14), and invalid arguments.
#include <algorithm>
#include <cmath>

#include "etc_core/base/random.h"
#include "sparse/labels/distance_maps.h"
#include "sparse/register_cpu.h"
#include "sparse/self_attention.h"
#include "tests/sparse/attention_support.h"
#include "tests/support/catch.h"
#include "tests/support/worst.h"

using namespace etc;
using namespace etc::test;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

namespace {

using Numbers = std::vector<float>;

// Numbers in (-1, 1), the same in every run.
Numbers noise(std::int64_t count, std::uint64_t key) {
  Numbers numbers;
  for (std::int64_t i = 0; i < count; ++i) {
    numbers.push_back(2 * uniform_from_bits(philox({static_cast<std::uint32_t>(i), 0, 0, 0}, key)[0]) - 1);
  }
  return numbers;
}

// One sequence with self-attention; the first `hidden` tokens are masked as keys.
struct Sequence {
  static constexpr std::int64_t kHeads = 2, kSize = 6, kWidth = kHeads * kSize;

  explicit Sequence(std::int64_t length)
      : n(length), q(noise(n * kWidth, 1)), k(noise(n * kWidth, 2)), v(noise(n * kWidth, 3)) {}

  std::int64_t n, hidden = 0;
  Numbers q, k, v;
  sparse::DistanceMap map;  // without rows: no labels
  Numbers rel, rel_bias, rel_k, factor, product, rel_v;
  float scale = 0.0f;

  std::int64_t rows() const { return *std::max_element(map.rows.begin(), map.rows.end()) + std::int64_t{1}; }

  // out [n, N, D]
  Numbers out() const {
    const std::vector<std::int64_t> offsets{0, n};
    std::vector<std::uint8_t> labels(static_cast<std::size_t>(n * (2 * n - 1)));
    for (std::int64_t i = 0; i < std::ssize(labels); ++i) {
      const std::int64_t query = i / (2 * n - 1), key = query + i % (2 * n - 1) - n + 1;
      const bool seen = key >= hidden && key < n;
      labels[static_cast<std::size_t>(i)] = seen ? std::uint8_t{0} : sparse::kMasked;
    }
    sparse::AttentionTiles tiles =
        sparse::build_self_tiles({1, offsets.data(), sparse::SequenceLabels::kFull, 0, labels.data()});
    sparse::RelativeTable table;
    if (!map.rows.empty()) {
      sparse::label_by_distance(tiles.types[0], map);
      const auto part = [](const Numbers& numbers) { return numbers.empty() ? nullptr : numbers.data(); };
      table = {part(rel), part(rel_bias), rows(), part(rel_k), part(factor), part(product), part(rel_v)};
    }
    Numbers result(q.size()), lse(static_cast<std::size_t>(n * kHeads));
    sparse::AttentionForward args;
    const sparse::Rows none{nullptr, kWidth, 0};
    args.inputs = {
        kHeads, kSize, {q.data(), kWidth, n}, {{{k.data(), kWidth, n}, {v.data(), kWidth, n}}, {none, none}}, table,
        &tiles, {}};
    args.inputs.scale = scale;
    args.out = {result.data(), kWidth, n};
    args.lse = lse.data();
    Buffer<std::uint8_t> scratch(sparse::attention_forward_scratch_bytes(Device::cpu, args.inputs), Purpose::scratch);
    args.scratch = scratch.data();
    sparse::attention_forward(Device::cpu, args);
    return result;
  }
};

// The largest difference of two results.
double distance(const Numbers& a, const Numbers& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) test::keep_worst(worst, std::fabs(a[i] - b[i]));
  return worst;
}

// Outputs are means of numbers below 1 and differ by some tens of roundings.
constexpr double kSame = 4e-6, kOther = 1e-3;

// The rows of tokens [first, n).
Numbers rows_from(const Numbers& rows, std::int64_t first) {
  return {rows.begin() + first * Sequence::kWidth, rows.end()};
}

Numbers reversed(const Numbers& rows) {
  Numbers to;
  for (std::int64_t r = std::ssize(rows) / Sequence::kWidth; r-- > 0;) {
    to.insert(to.end(), rows.begin() + r * Sequence::kWidth, rows.begin() + (r + 1) * Sequence::kWidth);
  }
  return to;
}

// A sequence with every additive table, or one with a factor.
Sequence with_tables(std::int64_t n, std::int64_t clip) {
  Sequence s(n);
  s.map = sparse::clipped_distances(clip);
  const std::int64_t rows = s.rows();
  s.rel = noise(rows * Sequence::kWidth, 4);
  s.rel_bias = noise(rows * Sequence::kHeads, 5);
  s.rel_k = noise(rows * Sequence::kWidth, 6);
  s.product = noise(rows * Sequence::kWidth, 7);
  s.rel_v = noise(rows * Sequence::kWidth, 8);
  return s;
}

}  // namespace

TEST_CASE("relative terms do not see where a sequence begins", "[sparse]") {
  sparse::register_cpu_kernels();
  const Sequence s = with_tables(45, 9);
  for (const std::int64_t before : {1, 16, 21}) {
    Sequence later = s;
    later.n += before;
    later.hidden = before;
    for (Numbers* rows : {&later.q, &later.k, &later.v}) {
      const Numbers more = noise(before * Sequence::kWidth, 9);
      rows->insert(rows->begin(), more.begin(), more.end());
    }
    CHECK(distance(rows_from(later.out(), before), s.out()) < kSame);
  }
}

TEST_CASE("tables of zeros, and factors of one, are plain attention", "[sparse]") {
  sparse::register_cpu_kernels();
  const Sequence plain(40);
  Sequence s = with_tables(40, 7);
  for (Numbers* table : {&s.rel, &s.rel_bias, &s.rel_k, &s.rel_v}) std::fill(table->begin(), table->end(), 0.0f);
  std::fill(s.product.begin(), s.product.end(), 1.0f);
  CHECK(distance(s.out(), plain.out()) < kSame);
  s.product.clear();
  s.factor.assign(static_cast<std::size_t>(s.rows() * Sequence::kHeads), 1.0f);
  CHECK(distance(s.out(), plain.out()) < kSame);
  // Each part has an effect.
  for (Numbers* table : {&s.rel, &s.rel_bias, &s.rel_k, &s.rel_v, &s.factor}) {
    const Numbers before = *table;
    *table = noise(std::ssize(before), 11);
    CHECK(distance(s.out(), plain.out()) > kOther);
    *table = before;
  }
}

TEST_CASE("the methods of Huang et al. contain each other", "[sparse]") {
  sparse::register_cpu_kernels();
  constexpr std::int64_t kLength = 38;
  Sequence directed(kLength), undirected(kLength), products(kLength);
  directed.map = products.map = sparse::clipped_distances(kLength - 1);
  undirected.map = sparse::undirected_distances(kLength - 1);
  undirected.factor = noise(kLength * Sequence::kHeads, 4);
  for (const std::uint32_t row : directed.map.rows) {
    const std::int64_t far = std::abs(static_cast<std::int64_t>(row) - (kLength - 1));
    for (std::int64_t h = 0; h < Sequence::kHeads; ++h) {
      const float factor = undirected.factor[static_cast<std::size_t>(far * Sequence::kHeads + h)];
      directed.factor.push_back(factor);
      products.product.insert(products.product.end(), Sequence::kSize, factor);
    }
  }
  // Method 2 with equal numbers on both sides is method 1; method 3 with equal numbers in a row is method 2.
  CHECK(distance(directed.out(), undirected.out()) < kSame);
  CHECK(distance(directed.out(), products.out()) < kSame);
  directed.factor.front() += 1.0f;
  CHECK(distance(directed.out(), undirected.out()) > kOther);

  // Method 4: q·k + q·w + k·w = (q+w)·(k+w) - w·w, here with a table of one row.
  Sequence one(kLength), moved(kLength);
  one.map = sparse::clipped_distances(0);
  one.rel = one.rel_k = noise(Sequence::kWidth, 5);
  for (std::int64_t i = 0; i < std::ssize(moved.q); ++i) {
    const auto at = static_cast<std::size_t>(i);
    moved.q[at] += one.rel[static_cast<std::size_t>(i % Sequence::kWidth)];
    moved.k[at] += one.rel[static_cast<std::size_t>(i % Sequence::kWidth)];
  }
  CHECK(distance(one.out(), moved.out()) < kSame);  // w·w is the same for every key
  // Shaw's method is method 4 without the key term.
  Sequence shaw = with_tables(kLength, 5), without = shaw;
  std::fill(shaw.rel_k.begin(), shaw.rel_k.end(), 0.0f);
  without.rel_k.clear();
  CHECK(distance(shaw.out(), without.out()) < kSame);
}

TEST_CASE("distances clipped beyond the sequence are not clipped", "[sparse]") {
  sparse::register_cpu_kernels();
  const Sequence exact = with_tables(33, 32);
  Sequence far = with_tables(33, 40), cut = exact;
  const auto rows = [](const Numbers& table, std::int64_t width) {
    return Numbers{table.begin() + 8 * width, table.end() - 8 * width};
  };
  cut.rel = rows(far.rel, Sequence::kWidth);
  cut.rel_k = rows(far.rel_k, Sequence::kWidth);
  cut.rel_v = rows(far.rel_v, Sequence::kWidth);
  cut.product = rows(far.product, Sequence::kWidth);
  cut.rel_bias = rows(far.rel_bias, Sequence::kHeads);
  // w: columns with one label are summed in another order than columns with several.
  CHECK(distance(cut.out(), far.out()) < kSame);
  CHECK(distance(with_tables(33, 31).out(), far.out()) > kOther);
  cut.product.clear();
  far.product.clear();
  CHECK(distance(cut.out(), far.out()) == 0.0);
}

TEST_CASE("what is added to every key's score changes nothing", "[sparse]") {
  sparse::register_cpu_kernels();
  Sequence s = with_tables(41, 6);
  s.scale = 1.0f;
  Sequence moved = s;
  // Transformer-XL: one vector added to all r; T5: one number added to a head's biases.
  const Numbers c = noise(Sequence::kWidth, 12);
  for (std::size_t i = 0; i < moved.rel.size(); ++i) moved.rel[i] += c[i % c.size()];
  for (std::size_t i = 0; i < moved.rel_bias.size(); ++i) moved.rel_bias[i] += i % Sequence::kHeads == 0 ? 3.0f : -1.0f;
  CHECK(distance(moved.out(), s.out()) < 4 * kSame);  // scores are larger
  Sequence unscaled = s;
  unscaled.scale = 0.0f;
  CHECK(distance(unscaled.out(), s.out()) > kOther);
}

TEST_CASE("Huang's method 1 does not know left from right, a directed table does", "[sparse]") {
  sparse::register_cpu_kernels();
  Sequence s(37);
  s.map = sparse::undirected_distances(36);
  s.factor = noise(37 * Sequence::kHeads, 4);
  const auto turned = [](const Sequence& from) {
    Sequence to = from;
    for (Numbers* rows : {&to.q, &to.k, &to.v}) *rows = reversed(*rows);
    return reversed(to.out());
  };
  CHECK(distance(turned(s), s.out()) < kSame);
  const Sequence directed = with_tables(37, 36);
  CHECK(distance(turned(directed), directed.out()) > kOther);
}

TEST_CASE("buckets of T5 widen with the distance, and the right half never has its first", "[sparse]") {
  const sparse::T5Buckets settings;
  for (std::int64_t d = 1; d < 300; ++d) {
    CHECK(sparse::t5_bucket(settings, -d) >= sparse::t5_bucket(settings, 1 - d));
    CHECK(sparse::t5_bucket(settings, d) == sparse::t5_bucket(settings, -d) + 16);
    CHECK(sparse::t5_bucket(settings, d) != 16);
    CHECK(sparse::t5_bucket({32, 128, false}, d) == 0);
  }
  const sparse::DistanceMap map = sparse::t5_distances({8, 20, true});
  for (std::int64_t d = -60; d <= 60; ++d) {
    const std::int64_t at = std::clamp<std::int64_t>(d - map.first, 0, std::ssize(map.rows) - 1);
    CHECK(map.rows[static_cast<std::size_t>(at)] == sparse::t5_bucket({8, 20, true}, d));
  }
}

TEST_CASE("maps of distances are refused where they make no table", "[sparse]") {
  CHECK_THROWS_WITH(sparse::clipped_distances(-1), Equals("relative positions: clip: expected at least 0, got -1"));
  CHECK_THROWS_WITH(sparse::clipped_distances(40000), Contains("clip: expected at most 65536 rows, got 80001: clip"));
  CHECK_THROWS_WITH(sparse::undirected_distances(-2), Contains("clip: expected at least 0, got -2"));
  CHECK_THROWS_WITH(sparse::reversed_distances(3, 2), Contains("expected least <= most, got 3 and 2"));
  CHECK_THROWS_WITH(sparse::t5_distances({7, 20, true}),
                    Contains("num_buckets: expected at least 4, an even number, got 7"));
  CHECK_THROWS_WITH(sparse::t5_distances({3, 20, false}), Contains("num_buckets: expected at least 4, got 3"));
  CHECK_THROWS_WITH(sparse::t5_distances({32, 8, true}),
                    Contains("max_distance: expected more than the 8 exact buckets of num_buckets=32, got 8"));
  const AttentionCase listed{"listed", {20}, {3}, 4, 1, 4, 8, Labels::document};
  Structure structure(listed);
  sparse::TypeTiles& tiles = structure.long_tiles.types[0];
  CHECK_THROWS_WITH(sparse::label_by_distance(tiles, {0, {0}}),
                    Contains("labels.l2l: expected a type whose listed labels only mask (R=0), got listed labels with "
                             "R=8"));
  tiles.relative = false;
  CHECK_THROWS_WITH(sparse::label_by_distance(tiles, {}), Contains("expected a map of at least one distance"));
  CHECK_THROWS_WITH(sparse::label_by_distance(tiles, {0, {65536}}), Contains("expected rows below 65536, got 65536"));
  CHECK_THROWS_WITH(sparse::label_by_distance(tiles, {0, {0}}, {1, 2}),
                    Contains("expected a shift for each of B=1 examples, got 2"));
}

TEST_CASE("tables that do not fit are refused", "[sparse]") {
  sparse::register_cpu_kernels();
  AttentionCase c{"terms", {40}, {6}, 5, 2, 8, 0, Labels::none};
  c.distances = sparse::clipped_distances(4);
  c.relative_labels = 9;
  c.parts = {true, true, true, true, false, true};
  const auto structure = std::make_shared<const Structure>(c);
  const auto refuses = [&](const AttentionCase& changed, const std::string& message) {
    AttentionProblem p(changed, structure, Side::long_side);
    CHECK_THROWS_WITH(p.forward(), Contains(message));
  };
  AttentionCase bad = c;
  bad.parts.products = true;
  refuses(bad, "long_attention: rel: expected a factor of q·k or one of each component, got both");
  bad = c;
  bad.relative_labels = 8;
  refuses(bad, "rel must match labels.l2l: expected R=9, got R=8");
  bad.relative_labels = 65537;
  bad.head_size = 1;
  bad.heads = 1;
  bad.parts = {false, true};
  refuses(bad, "rel: expected R from 1 to 65536, got R=65537");
  for (const float scale : {-1.0f, NAN, INFINITY}) {
    bad = c;
    bad.scale = scale;
    refuses(bad, "scale: expected a finite number, 0 for 1/sqrt(D) or above, got");
  }
  bad = c;
  bad.compute = ComputeType::bf16;
  refuses(bad, "compute: expected fp32 with relative vectors of keys, of products or of values, got bf16");
  bad.parts = {false, false, false, false, false, true};
  refuses(bad, "compute: expected fp32 with relative vectors");
  bad.parts = {true, true, false, true};
  AttentionProblem fits(bad, structure, Side::long_side);
  CHECK_NOTHROW(fits.forward());
}

TEST_CASE("bf16 with factors and labels by distance is near fp32", "[sparse]") {
  sparse::register_cpu_kernels();
  AttentionCase c{"factors", {70}, {20}, 69, 2, 16, 0, Labels::none};
  c.distances = sparse::clipped_distances(9);
  c.relative_labels = 19;
  c.parts = {true, true, false, true};
  const auto structure = std::make_shared<const Structure>(c);
  for (Side side : {Side::long_side, Side::global_side}) {
    AttentionProblem p(c, structure, side);
    p.forward();
    const Numbers exact(p.out.values.begin(), p.out.values.end());
    p.setup.compute = ComputeType::bf16;
    p.forward();
    const Numbers rounded(p.out.values.begin(), p.out.values.end());
    CHECK(distance(exact, rounded) < 0.06);  // scores of a few units with a relative error of 2^-8
    CHECK(distance(exact, rounded) > 0.0);
    p.setup.parts.factors = false;
    p.forward();
    CHECK(distance(exact, {p.out.values.begin(), p.out.values.end()}) > 0.1);
  }
}
