#include "sparse/patterns/key_ranges.h"

#include <algorithm>

#include "etc_core/base/integers.h"
#include "etc_core/base/parallel.h"
#include "sparse/tile_builder.h"

namespace etc::sparse {

namespace {

// One entry of a group's list of ranges, with its query's bit.
struct SeenInterval {
  KeyInterval keys;
  std::uint16_t query;
};

// The steps that any query sees, as disjoint ranges of whole steps.
std::vector<KeyInterval> steps_of(const std::vector<SeenInterval>& seen) {
  std::vector<KeyInterval> steps;
  for (const SeenInterval& own : seen) {
    if (own.keys.begin >= own.keys.end) continue;
    steps.push_back({own.keys.begin / kRunStep * kRunStep, round_up(own.keys.end, kRunStep)});
  }
  std::sort(steps.begin(), steps.end(), [](const KeyInterval& a, const KeyInterval& b) { return a.begin < b.begin; });
  std::vector<KeyInterval> joined;
  for (const KeyInterval& own : steps) {
    if (joined.empty() || own.begin > joined.back().end) {
      joined.push_back(own);
    } else {
      joined.back().end = std::max(joined.back().end, own.end);
    }
  }
  return joined;
}

// Runs of whole steps, cut at key split boundaries.
GroupTiles tiles_of_group(const std::vector<SeenInterval>& seen) {
  GroupTiles out;
  const std::vector<KeyInterval> steps = steps_of(seen);
  std::int64_t columns = 0;
  std::vector<std::int64_t> first_columns;  // of each range of steps
  for (const KeyInterval& own : steps) {
    first_columns.push_back(columns);
    for (std::int64_t key = own.begin; key < own.end;) {
      const std::int64_t end = std::min(own.end, round_up(key + 1, kKeySplit));
      out.runs.push_back({columns, static_cast<std::int32_t>(key), static_cast<std::int32_t>(end - key)});
      columns += end - key;
      key = end;
    }
  }
  out.visible.assign(static_cast<std::size_t>(columns), 0);
  for (const SeenInterval& own : seen) {
    if (own.keys.begin >= own.keys.end) continue;
    // The range of steps that contains it: the last one that begins at or before it.
    const auto after = std::upper_bound(steps.begin(), steps.end(), own.keys.begin,
                                        [](std::int64_t key, const KeyInterval& s) { return key < s.begin; });
    const auto at = static_cast<std::size_t>(after - steps.begin() - 1);
    for (std::int64_t key = own.keys.begin; key < own.keys.end; ++key) {
      std::uint16_t& column = out.visible[static_cast<std::size_t>(first_columns[at] + key - steps[at].begin)];
      column = static_cast<std::uint16_t>(column | own.query);
    }
    out.visible_pairs += own.keys.end - own.keys.begin;
  }
  return out;
}

// Prefix sums over the groups of the number of key splits that each group's runs touch.
void fill_split_offsets(TypeTiles& tiles, std::int64_t groups) {
  tiles.split_offsets = Buffer<std::int64_t>(groups + 1, Purpose::labels);
  std::int64_t splits = 0;
  for (std::int64_t g = 0; g < groups; ++g) {
    tiles.split_offsets[g] = splits;
    std::int64_t last = -1;
    for (std::int64_t r = tiles.run_offsets[g]; r < tiles.run_offsets[g + 1]; ++r) {
      const std::int64_t split = tiles.runs[r].first_key / kKeySplit;
      splits += split != last ? 1 : 0;
      last = split;
    }
  }
  tiles.split_offsets[groups] = splits;
}

}  // namespace

TypeTiles build_key_ranges(const RangePattern& pattern) {
  TypeTiles tiles;
  tiles.type = pattern.type;
  tiles.heads = pattern.heads;
  tiles.query_offsets = pattern.query_offsets;
  tiles.key_offsets = pattern.key_offsets;
  tiles.group_offsets.push_back(0);
  std::vector<PatternQuery> firsts;  // of head 0's groups
  for (std::int64_t b = 0; b < tiles.examples(); ++b) {
    const auto at = static_cast<std::size_t>(b);
    const std::int64_t queries = tiles.query_offsets[at + 1] - tiles.query_offsets[at];
    for (std::int64_t q = 0; q < queries; q += kGroup) firsts.push_back({0, b, q});
    tiles.group_offsets.push_back(static_cast<std::int64_t>(firsts.size()));
  }
  const auto groups_of_head = static_cast<std::int64_t>(firsts.size());
  std::vector<GroupTiles> groups(static_cast<std::size_t>(pattern.heads * groups_of_head));
  parallel_for(static_cast<std::int64_t>(groups.size()), [&](std::int64_t number) {
    PatternQuery query = firsts[static_cast<std::size_t>(number % groups_of_head)];
    query.head = number / groups_of_head;
    const auto at = static_cast<std::size_t>(query.example);
    const std::int64_t queries = tiles.query_offsets[at + 1] - tiles.query_offsets[at];
    const std::int64_t end = std::min<std::int64_t>(queries, query.query + kGroup);
    std::vector<SeenInterval> seen;
    std::vector<KeyInterval> own;
    for (int i = 0; query.query < end; ++query.query, ++i) {
      own.clear();
      pattern.append_seen(query, own);
      for (const KeyInterval& keys : own) seen.push_back({keys, static_cast<std::uint16_t>(1u << i)});
    }
    groups[static_cast<std::size_t>(number)] = tiles_of_group(seen);
  });
  concatenate(tiles, groups);
  fill_split_offsets(tiles, static_cast<std::int64_t>(groups.size()));
  return tiles;
}

}  // namespace etc::sparse
