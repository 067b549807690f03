#include "tests/sparse/pattern_cases.h"

#include <algorithm>

#include "etc_core/base/integers.h"
#include "sparse/patterns/bigbird.h"
#include "sparse/patterns/causal.h"
#include "sparse/patterns/cross.h"
#include "sparse/self_attention.h"

namespace etc::test {

namespace {

std::vector<std::int64_t> sums_of(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> offsets(1, 0);
  for (const std::int64_t length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

std::shared_ptr<const sparse::AttentionTiles> shared(sparse::AttentionTiles tiles) {
  return std::make_shared<const sparse::AttentionTiles>(std::move(tiles));
}

PatternBatch self_batch(const std::string& name, const std::vector<std::int64_t>& lengths, std::int64_t radius) {
  return {name, lengths, lengths, [=](const auto& queries, const auto&) {
            PatternCase c;
            c.name = name;
            const std::vector<std::int64_t> offsets = sums_of(queries);
            sparse::SequenceLabels labels;
            labels.examples = static_cast<std::int64_t>(queries.size());
            labels.offsets = offsets.data();
            labels.radius = radius;
            c.tiles = shared(sparse::build_self_tiles(labels));
            c.sees = [radius](const PatternPair& p) { return radius < 0 || std::abs(p.key - p.query) <= radius; };
            return c;
          }};
}

// Visible blocks of one example and head according to BigBird's definition: [blocks, blocks].
std::vector<bool> block_mask(const sparse::BigBirdPattern& pattern, std::int64_t blocks, std::int64_t head) {
  const std::int64_t last = blocks - 1;
  std::vector<bool> mask;
  for (std::int64_t row = 0; row < blocks; ++row) {
    const bool all = blocks < 5 + pattern.random_blocks || row == 0 || row == last;
    std::vector<std::int64_t> random;
    if (!all) random = sparse::random_key_blocks(pattern, {blocks, row, head, 0});
    for (std::int64_t column = 0; column < blocks; ++column) {
      const bool fixed = all || column == 0 || column == last || std::abs(row - column) <= 1;
      mask.push_back(fixed || std::find(random.begin(), random.end(), column) != random.end());
    }
  }
  return mask;
}

}  // namespace

PatternCase PatternBatch::make() const {
  return build(queries, keys);
}

PatternBatch PatternBatch::only(std::size_t b) const {
  return {name, {queries[b]}, {keys[b]}, build};
}

PatternBatch causal_batch(const std::string& name, const std::vector<std::int64_t>& queries,
                          const std::vector<std::int64_t>& keys, std::int64_t reach) {
  return {name, queries, keys, [=](const auto& of_queries, const auto& of_keys) {
            PatternCase c;
            c.name = name;
            const std::vector<std::int64_t> query_offsets = sums_of(of_queries), key_offsets = sums_of(of_keys);
            sparse::CausalSequence sequence;
            sequence.examples = static_cast<std::int64_t>(of_queries.size());
            sequence.offsets = query_offsets.data();
            if (of_queries != of_keys) sequence.key_offsets = key_offsets.data();
            sequence.reach = reach;
            c.tiles = shared(sparse::build_causal_tiles(sequence));
            c.sees = [reach, of_queries, of_keys](const PatternPair& p) {
              const auto b = static_cast<std::size_t>(p.example);
              const std::int64_t distance = of_keys[b] - of_queries[b] + p.query - p.key;
              return distance >= 0 && (reach < 0 || distance <= reach);
            };
            return c;
          }};
}

PatternBatch cross_batch(const std::string& name, const std::vector<std::int64_t>& queries,
                         const std::vector<std::int64_t>& keys) {
  return {name, queries, keys, [=](const auto& of_queries, const auto& of_keys) {
            PatternCase c;
            c.name = name;
            const std::vector<std::int64_t> query_offsets = sums_of(of_queries), key_offsets = sums_of(of_keys);
            c.tiles = shared(sparse::build_cross_tiles(
                {static_cast<std::int64_t>(of_queries.size()), query_offsets.data(), key_offsets.data()}));
            c.sees = [](const PatternPair&) { return true; };
            return c;
          }};
}

PatternBatch bigbird_batch(const std::string& name, const std::vector<std::int64_t>& lengths,
                           const BigBirdShape& shape) {
  return {name, lengths, lengths, [=](const auto& queries, const auto&) {
            PatternCase c;
            c.name = name;
            const std::vector<std::int64_t> offsets = sums_of(queries);
            sparse::BigBirdPattern pattern;
            pattern.block_size = shape.block_size;
            pattern.random_blocks = shape.random_blocks;
            pattern.heads = shape.heads;
            pattern.seed = 42;
            c.tiles = shared(sparse::build_bigbird_tiles(
                pattern, {static_cast<std::int64_t>(queries.size()), offsets.data(), 0, {}}));
            std::vector<std::vector<bool>> masks;  // [examples, heads]
            for (const std::int64_t length : queries) {
              for (std::int64_t head = 0; head < shape.heads; ++head) {
                masks.push_back(block_mask(pattern, ceil_div(length, shape.block_size), head));
              }
            }
            c.sees = [masks, queries, shape](const PatternPair& p) {
              const std::int64_t blocks = ceil_div(queries[static_cast<std::size_t>(p.example)], shape.block_size);
              const auto& mask = masks[static_cast<std::size_t>(p.example * shape.heads + p.head % shape.heads)];
              const std::int64_t block = p.query / shape.block_size * blocks + p.key / shape.block_size;
              return static_cast<bool>(mask[static_cast<std::size_t>(block)]);
            };
            return c;
          }};
}

const std::vector<PatternBatch>& pattern_batches() {
  constexpr std::int64_t all = sparse::CausalSequence::kAll;
  static const std::vector<PatternBatch> batches = {
      self_batch("window", {70, 0, 5, 33}, 6),
      self_batch("full", {40, 1, 0, 21}, sparse::SequenceLabels::kFull),
      causal_batch("causal", {70, 0, 1, 33}, {70, 0, 1, 33}, all),
      causal_batch("causal, several segments", {1030}, {1030}, all),
      causal_batch("causal window", {70, 0, 5, 33}, {70, 0, 5, 33}, 9),
      causal_batch("causal window, several segments", {1100, 600}, {1100, 600}, 30),
      causal_batch("causal, itself alone", {20, 3}, {20, 3}, 0),
      causal_batch("memory", {4, 20, 0, 33}, {7, 20, 3, 50}, all),
      causal_batch("memory, several segments", {530, 9}, {700, 9}, all),
      causal_batch("memory, same length", {40, 25, 7}, {57, 42, 7}, 17),
      causal_batch("memory beyond the reach", {600, 12}, {700, 40}, 8),
      cross_batch("cross", {5, 0, 40, 9}, {9, 4, 0, 33}),
      cross_batch("cross, several splits", {35, 3}, {1100, 600}),
      bigbird_batch("blocks", {200, 0, 33, 1}, {8, 2, 1}),
      bigbird_batch("blocks of each head", {200, 0, 33, 131}, {8, 2, 2}),
      bigbird_batch("blocks across groups", {100, 64}, {7, 1, 2}),
      bigbird_batch("blocks of 64", {1100, 650}, {64, 3, 2}),
      bigbird_batch("blocks without random ones", {90}, {5, 0, 1}),
  };
  return batches;
}

}  // namespace etc::test
