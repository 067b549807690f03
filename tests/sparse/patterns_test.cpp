// Every pattern compared with a brute-force mask: tiles, the operator's numbers, equal bits, invalid arguments.
#include <cmath>

#include "etc_core/base/parallel.h"
#include "sparse/patterns/bigbird.h"
#include "sparse/patterns/causal.h"
#include "sparse/patterns/cross.h"
#include "sparse/register_cpu.h"
#include "tests/sparse/pattern_cases.h"
#include "tests/support/catch.h"

using namespace etc;
using namespace etc::test;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

namespace {

// The brute-force reference of a long sequence takes seconds, so it is run only once, for the harder of two variants.
bool is_long(const PatternCase& c) {
  return c.tiles->types[0].queries() > 400;
}

}  // namespace

TEST_CASE("a pattern's tiles hold exactly the pairs of its definition, and few columns more", "[sparse]") {
  for (const PatternBatch& batch : pattern_batches()) CHECK(check_tiles(batch.make()) == "");
}

TEST_CASE("attention in every pattern equals the reference in values and gradients", "[sparse]") {
  sparse::register_cpu_kernels();
  for (const PatternBatch& batch : pattern_batches()) {
    for (const float dropout : {0.0f, 0.2f}) {
      PatternCase c = batch.make();
      c.dropout = dropout;
      if (is_long(c) && dropout == 0.0f) continue;
      CHECK(compare_pattern(c, run_pattern(c)) == "");
    }
  }
}

TEST_CASE("running scores in every pattern equal the reference through several layers", "[sparse]") {
  sparse::register_cpu_kernels();
  for (const PatternBatch& batch : pattern_batches()) {
    for (const bool mean : {false, true}) {
      PatternCase c = batch.make();
      if (is_long(c) && !mean) continue;
      c.carries = true;
      c.running_mean = mean;
      c.layers = is_long(c) ? 2 : 3;
      CHECK(compare_pattern(c, run_pattern(c)) == "");
    }
  }
}

TEST_CASE("attention in every pattern has the same bits on 1, 2 and 3 threads, and for an example alone", "[sparse]") {
  sparse::register_cpu_kernels();
  const int before = thread_count();
  for (const PatternBatch& batch : pattern_batches()) {
    PatternCase c = batch.make();
    c.dropout = 0.1f;
    c.carries = true;
    c.layers = 2;
    set_thread_count(1);
    const std::vector<PatternLayer> one = run_pattern(c);
    for (const int threads : {2, 3}) {
      set_thread_count(threads);
      const std::vector<PatternLayer> more = run_pattern(c);
      for (std::size_t l = 0; l < one.size(); ++l) {
        CHECK(one[l].out == more[l].out);
        CHECK(one[l].dq == more[l].dq);
        CHECK(one[l].dk == more[l].dk);
        CHECK(one[l].dv == more[l].dv);
        CHECK(one[l].running == more[l].running);
      }
    }
    for (std::size_t b = 0; b < batch.queries.size(); ++b) {
      PatternCase alone = batch.only(b).make();
      alone.dropout = c.dropout;
      alone.carries = true;
      alone.layers = 2;
      alone.first_ordinal = static_cast<std::int64_t>(b);
      CAPTURE(c.name, b);
      CHECK(different_bits(c, one, b, run_pattern(alone)) == "");
    }
  }
  set_thread_count(before);
}

TEST_CASE("a window that reaches everything before is causal attention, and a memory the tokens before it",
          "[sparse]") {
  sparse::register_cpu_kernels();
  // 40 tokens in one pass, and their last 25 with the first 15 as memory: invariant 6 of the specification at depth 1.
  const PatternCase whole = causal_batch("whole", {40}, {40}, sparse::CausalSequence::kAll).make();
  const PatternCase wide = causal_batch("wide", {40}, {40}, 100).make();
  const PatternCase segment = causal_batch("segment", {25}, {40}, sparse::CausalSequence::kAll).make();
  std::vector<PatternLayer> of_whole = run_pattern(whole);
  CHECK(of_whole[0].out == run_pattern(wide)[0].out);
  CHECK(of_whole[0].dk == run_pattern(wide)[0].dk);
  CHECK(whole.tiles->types[0].visible_pairs == 40 * 41 / 2);
  CHECK(segment.tiles->types[0].visible_pairs == 40 * 41 / 2 - 15 * 16 / 2);
  // same_length: all queries see the same number of keys.
  const PatternCase same = causal_batch("same length", {25}, {40}, 15).make();
  CHECK(same.tiles->types[0].visible_pairs == 25 * 16);
}

TEST_CASE("work of a pattern is its visible pairs, whatever the length", "[sparse]") {
  const auto columns = [](const PatternBatch& batch) { return batch.make().tiles->types[0].columns; };
  const std::int64_t short_window = columns(causal_batch("", {2000}, {2000}, 31));
  CHECK(columns(causal_batch("", {4000}, {4000}, 31)) <= 2 * short_window + 64);
  const BigBirdShape shape{64, 3, 1};
  const std::int64_t middle = columns(bigbird_batch("", {64 * 100}, shape));
  const std::int64_t twice = columns(bigbird_batch("", {64 * 200}, shape));
  // The first and the last row see all blocks; a middle row sees 8 blocks, or fewer where blocks coincide.
  CHECK(middle <= (98 * 8 * 64 + 2 * 6400) * 4);
  CHECK(twice <= (198 * 8 * 64 + 2 * 12800) * 4);
  CHECK(twice > 19 * middle / 10);
  // Partial results of the splits with the first, last, neighbouring and random blocks; all 25 for queries that see
  // everything.
  const PatternCase blocks = bigbird_batch("", {64 * 200}, shape).make();
  const sparse::TypeTiles& type = blocks.tiles->types[0];
  CHECK(type.split_offsets[800] < 45 * 800 / 10);
}

TEST_CASE("random blocks are those of the published plan", "[sparse]") {
  sparse::BigBirdPattern pattern{64, 3};
  pattern.seed = 5;
  for (const std::int64_t blocks : {8, 9, 11, 12, 40}) {
    for (std::int64_t row = 1; row + 1 < blocks; ++row) {
      for (std::int64_t head = 0; head < 20; ++head) {
        const std::vector<std::int64_t> chosen = sparse::random_key_blocks(pattern, {blocks, row, head, 0});
        CAPTURE(blocks, row, head);
        // 2r+5 = 11: with more blocks all rows choose among the first 11. With up to 11 blocks they choose one among
        // the first 8 and two among the rest, if these have enough blocks that the row does not see anyway.
        if (blocks > 11) CHECK((chosen.size() == 3 && chosen.back() < 10));
        if (blocks == 8) CHECK(chosen.size() == 3);
        if (blocks == 11) CHECK((!chosen.empty() && chosen.front() < 7 && chosen.back() != 10));
        for (const std::int64_t block : chosen) {
          CHECK((block > 0 && block < blocks - 1 && std::abs(block - row) > 1));
          if (row == 1) CHECK((block != blocks - 2 || blocks > 8));
        }
        CHECK(std::is_sorted(chosen.begin(), chosen.end()));
        CHECK(std::adjacent_find(chosen.begin(), chosen.end()) == chosen.end());
      }
    }
  }
  // Row 1 never takes the range's second-last block, and the row of that block never takes block 1.
  for (std::int64_t head = 0; head < 200; ++head) {
    for (const std::int64_t block : sparse::random_key_blocks(pattern, {12, 1, head, 0})) CHECK(block != 9);
    for (const std::int64_t block : sparse::random_key_blocks(pattern, {12, 9, head, 0})) CHECK(block != 1);
  }
}

TEST_CASE("random blocks depend on seed, head, row and, if wanted, layer alone", "[sparse]") {
  sparse::BigBirdPattern pattern{64, 3};
  const auto blocks = [&](std::int64_t head, std::int64_t layer) {
    std::vector<std::vector<std::int64_t>> rows;
    for (std::int64_t row = 1; row < 39; ++row)
      rows.push_back(sparse::random_key_blocks(pattern, {40, row, head, layer}));
    return rows;
  };
  const auto first = blocks(0, 0);
  CHECK(first == blocks(0, 7));
  CHECK(first != blocks(1, 0));
  pattern.per_layer = true;
  CHECK(blocks(0, 0) != blocks(0, 7));
  pattern.per_layer = false;
  pattern.seed = 1;
  CHECK(first != blocks(0, 0));
  // All candidates are equally frequent: 8 candidates of a middle row far from the range, of which 3 are taken.
  std::vector<int> counts(11, 0);
  for (std::int64_t head = 0; head < 4000; ++head) {
    for (const std::int64_t block : sparse::random_key_blocks(pattern, {40, 20, head, 0})) {
      ++counts[static_cast<std::size_t>(block)];
    }
  }
  CHECK((counts[0] == 0 && counts[10] == 0));
  for (std::size_t block = 1; block < 10; ++block) CHECK(std::abs(counts[block] - 12000 / 9) < 150);
}

TEST_CASE("enough random blocks are full attention, and heads may share a pattern or have their own", "[sparse]") {
  sparse::register_cpu_kernels();
  const PatternCase all = bigbird_batch("all blocks", {75}, {16, 3, 1}).make();  // 5 blocks, fewer than 5 + 3
  CHECK(all.tiles->types[0].visible_pairs == 75 * 75);
  // 9 blocks and r = 4: rows that are not adjacent to the first or last block see every block.
  const PatternCase most = bigbird_batch("most blocks", {72}, {8, 4, 1}).make();
  for (std::int64_t row : {0, 2, 4, 6, 8}) {
    for (std::int64_t key = 0; key < 72; ++key) CHECK(most.sees({0, 0, row * 8, key}));
  }
  const PatternCase own = bigbird_batch("own", {640}, {16, 3, 2}).make();
  bool differ = false;
  for (std::int64_t i = 0; i < 640; i += 16) {
    for (std::int64_t j = 0; j < 640; j += 16) differ = differ || own.sees({0, 0, i, j}) != own.sees({1, 0, i, j});
  }
  CHECK(differ);
  CHECK(own.tiles->types[0].heads == 2);
}

TEST_CASE("impossible patterns are errors", "[sparse]") {
  sparse::register_cpu_kernels();
  const std::vector<std::int64_t> five = {0, 5}, three = {0, 3}, late = {1, 5};
  CHECK_THROWS_WITH(
      sparse::build_causal_tiles({1, five.data(), three.data()}),
      Equals(
          "self_attention: key_offsets: example 0: expected the memory and all 5 tokens of the segment, got 3 keys"));
  CHECK_THROWS_WITH(sparse::build_causal_tiles({1, five.data(), nullptr, -2}),
                    Equals("self_attention: reach: expected at least 0, got -2"));
  CHECK_THROWS_WITH(sparse::build_causal_tiles({1, late.data()}), Contains("offsets: expected to start at 0, got 1"));
  CHECK_THROWS_WITH(sparse::build_cross_tiles({1, five.data(), nullptr}),
                    Contains("cross_attention: key_offsets: expected [B+1=2] offsets, got null"));
  sparse::BigBirdPattern pattern;
  pattern.block_size = 0;
  CHECK_THROWS_WITH(sparse::build_bigbird_tiles(pattern, {1, five.data(), 0, {}}),
                    Equals("bigbird_attention: bigbird_block_size: expected at least 1, got 0"));
  pattern.block_size = 1;
  pattern.random_blocks = -1;
  CHECK_THROWS_WITH(sparse::build_bigbird_tiles(pattern, {1, five.data(), 0, {}}),
                    Contains("bigbird_random_blocks: expected at least 0, got -1"));
  pattern.random_blocks = 0;
  pattern.heads = 0;
  CHECK_THROWS_WITH(sparse::build_bigbird_tiles(pattern, {1, five.data(), 0, {}}),
                    Contains("heads with blocks of their own: expected at least 1, got 0"));
  pattern.heads = 1;
  CHECK_THROWS_WITH(
      sparse::build_bigbird_tiles(
          pattern, {1, five.data(), 0, [](const sparse::BigBirdRow&) { return std::vector<std::int64_t>{5}; }}),
      Contains("random blocks: row 1: expected blocks below 5, got 5"));
  PatternCase three_heads = bigbird_batch("own", {100}, {8, 1, 2}).make();
  three_heads.heads = 3;
  CHECK_THROWS_WITH(run_pattern(three_heads),
                    Contains("tiles of self: expected those of N=3 heads or of one for all, got those of 2"));
}
