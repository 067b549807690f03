#include "sparse/tile_sample.h"

#include <map>

#include "etc_core/base/counting.h"

namespace etc::sparse {

namespace {

thread_local std::map<int, GroupSizes> t_groups;  // by AttentionType::index; empty: no sample

GroupSizes middle_group(const TypeTiles& tiles) {
  GroupSizes sizes;
  const std::int64_t groups = tiles.run_offsets.size() - 1;
  if (groups < 1) return sizes;
  const std::int64_t group = groups / 2;
  for (std::int64_t r = tiles.run_offsets[group]; r < tiles.run_offsets[group + 1]; ++r) {
    const TileRun& run = tiles.runs[r];
    ++sizes.runs;
    sizes.columns += run.keys;
    for (std::int64_t column = run.column; column < run.column + run.keys; ++column) {
      sizes.visible_pairs += __builtin_popcount(tiles.visible[column]);
      sizes.mixed_columns += tiles.relative && tiles.label[column] >= kFirstMixed ? 1 : 0;
    }
  }
  sizes.whole = !tiles.window && sizes.visible_pairs == kGroup * tiles.keys();
  return sizes;
}

}  // namespace

TileSample::TileSample(const AttentionTiles& long_tiles, const AttentionTiles& global_tiles) {
  for (const AttentionTiles* tiles : {&long_tiles, &global_tiles}) {
    for (const TypeTiles& type : tiles->types) t_groups[type.type.index] = middle_group(type);
  }
  reserve_labels(true);
}

TileSample::~TileSample() {
  t_groups.clear();
  reserve_labels(false);
}

const GroupSizes* sampled_group(AttentionType type) {
  if (!counting()) return nullptr;
  const auto group = t_groups.find(type.index);
  return group == t_groups.end() ? nullptr : &group->second;
}

}  // namespace etc::sparse
