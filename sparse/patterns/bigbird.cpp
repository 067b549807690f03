#include "sparse/patterns/bigbird.h"

#include <algorithm>
#include <atomic>

#include "etc_core/base/error.h"
#include "etc_core/base/integers.h"
#include "etc_core/base/log.h"
#include "etc_core/base/profiler.h"
#include "etc_core/base/random.h"
#include "sparse/patterns/key_ranges.h"
#include "sparse/tile_builder.h"

namespace etc::sparse {

namespace {

constexpr std::uint64_t kStream = 0x62696762697264ull;  // distinct from all other uses of a seed

// Candidates [begin, end), of which a row takes `wanted`.
struct CandidateRange {
  std::int64_t begin, end, wanted;
};

std::vector<CandidateRange> plan_of(std::int64_t blocks, std::int64_t r) {
  if (2 * r + 5 < blocks) return {{0, 2 * r + 5, r}};
  if (r + 5 < blocks) return {{0, r + 5, r / 2}, {r + 5, blocks, r - r / 2}};
  return {{0, blocks, r}};
}

// Blocks that a row sees anyway. As in the published program, also the range's second-last block for row 1, and block 1
// for the range's second-last row.
bool excluded(const BigBirdRow& row, std::int64_t range_end, std::int64_t block) {
  if (block == 0 || block == range_end - 1 || std::abs(block - row.row) <= 1) return true;
  return (row.row == 1 && block == range_end - 2) || (row.row == range_end - 2 && block == 1);
}

// A block's sort key in the row's permutation: smaller values come first.
std::uint32_t draw(const BigBirdPattern& pattern, const BigBirdRow& row, std::int64_t block) {
  const auto word = [](std::int64_t number) { return static_cast<std::uint32_t>(number); };
  return philox({word(block), word(row.row), word(row.head), word(pattern.per_layer ? row.layer + 1 : 0)},
                mix_key(pattern.seed, kStream))[0];
}

// All key blocks of a row, ascending, each once.
std::vector<std::int64_t> key_blocks(const BigBirdPattern& pattern, const BigBirdBatch& batch, const BigBirdRow& row) {
  const std::int64_t last = row.blocks - 1;
  std::vector<std::int64_t> blocks;
  if (row.row == 0 || row.row == last || row.blocks < 5 + pattern.random_blocks) {
    for (std::int64_t n = 0; n <= last; ++n) blocks.push_back(n);
    return blocks;
  }
  blocks = batch.given ? batch.given(row) : random_key_blocks(pattern, row);
  for (const std::int64_t block : blocks) {
    if (block >= 0 && block <= last) continue;
    fail(kBigBirdAttention.name, "random blocks: row {}: expected blocks below {}, got {}", row.row, row.blocks, block);
  }
  blocks.insert(blocks.end(), {0, row.row - 1, row.row, row.row + 1, last});
  std::sort(blocks.begin(), blocks.end());
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  return blocks;
}

// Merges adjacent blocks into ranges and truncates them at the example's end.
std::vector<KeyInterval> ranges_of(const std::vector<std::int64_t>& blocks, std::int64_t size, std::int64_t tokens) {
  std::vector<KeyInterval> ranges;
  for (const std::int64_t block : blocks) {
    const std::int64_t begin = block * size, end = std::min(begin + size, tokens);
    if (!ranges.empty() && ranges.back().end == begin) {
      ranges.back().end = end;
    } else {
      ranges.push_back({begin, end});
    }
  }
  return ranges;
}

// Logs one line only, however many batches have short examples.
void warn_of_full_attention(const BigBirdPattern& pattern, std::int64_t example, std::int64_t tokens) {
  static std::atomic<bool> told{false};
  if (told.exchange(true)) return;
  log::warn(
      "{}: example {}: {} tokens are fewer than 5 + {} blocks of {}: it sees everything, as all such examples do (said "
      "once)",
      kBigBirdAttention.name, example, tokens, pattern.random_blocks, pattern.block_size);
}

void check_pattern(const BigBirdPattern& pattern) {
  const char* const where = kBigBirdAttention.name;
  if (pattern.block_size < 1) fail(where, "bigbird_block_size: expected at least 1, got {}", pattern.block_size);
  if (pattern.random_blocks < 0) {
    fail(where, "bigbird_random_blocks: expected at least 0, got {}", pattern.random_blocks);
  }
  if (pattern.heads < 1) fail(where, "heads with blocks of their own: expected at least 1, got {}", pattern.heads);
}

}  // namespace

std::vector<std::int64_t> random_key_blocks(const BigBirdPattern& pattern, const BigBirdRow& row) {
  std::vector<std::int64_t> chosen;
  for (const CandidateRange& range : plan_of(row.blocks, pattern.random_blocks)) {
    std::vector<std::pair<std::uint32_t, std::int64_t>> order;  // the permutation without excluded blocks
    for (std::int64_t block = range.begin; block < range.end; ++block) {
      if (!excluded(row, range.end, block)) order.emplace_back(draw(pattern, row, block), block);
    }
    std::sort(order.begin(), order.end());
    const auto taken = std::min(order.size(), static_cast<std::size_t>(range.wanted));
    for (std::size_t n = 0; n < taken; ++n) chosen.push_back(order[n].second);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

AttentionTiles build_bigbird_tiles(const BigBirdPattern& pattern, const BigBirdBatch& batch) {
  const profiler::Scope profiled("build_tiles", {});
  const AttentionOperator& op = kBigBirdAttention;
  check_pattern(pattern);
  check_relative_labels(op.name, batch.examples, 0);
  const std::vector<std::int64_t> offsets = checked_offsets(op.name, "offsets", batch.offsets, batch.examples);
  std::vector<std::int64_t> first_rows(1, 0);  // of each example, in `rows`
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
    const std::int64_t tokens = offsets[b + 1] - offsets[b], blocks = ceil_div(tokens, pattern.block_size);
    if (blocks > 0 && blocks < 5 + pattern.random_blocks) {
      warn_of_full_attention(pattern, static_cast<std::int64_t>(b), tokens);
    }
    first_rows.push_back(first_rows.back() + blocks);
  }
  std::vector<std::vector<KeyInterval>> rows;  // [heads, query blocks of all examples]
  for (std::int64_t head = 0; head < pattern.heads; ++head) {
    for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
      const std::int64_t blocks = first_rows[b + 1] - first_rows[b];
      for (std::int64_t row = 0; row < blocks; ++row) {
        rows.push_back(ranges_of(key_blocks(pattern, batch, {blocks, row, head, batch.layer}), pattern.block_size,
                                 offsets[b + 1] - offsets[b]));
      }
    }
  }
  const auto of_row = [&](const PatternQuery& query, std::vector<KeyInterval>& seen) {
    const std::int64_t row = query.head * first_rows.back() + first_rows[static_cast<std::size_t>(query.example)] +
                             query.query / pattern.block_size;
    seen = rows[static_cast<std::size_t>(row)];
  };
  const auto none = [](const PatternQuery&, std::vector<KeyInterval>&) {};
  const std::vector<std::int64_t> no_keys(offsets.size(), 0);
  return {&op,
          {build_key_ranges({op.types[0], offsets, offsets, pattern.heads, of_row}),
           build_key_ranges({op.types[1], offsets, no_keys, 1, none})},
          {}};
}

}  // namespace etc::sparse
