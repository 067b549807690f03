#include "sparse/tile_sample.h"

#include <array>

#include "etc_core/base/counting.h"

namespace etc::sparse {

namespace {

std::array<GroupSizes, kAttentionTypes> g_groups;
bool g_sampled = false;

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
  sizes.whole = tiles.type != AttentionType::l2l && sizes.visible_pairs == kGroup * tiles.keys();
  return sizes;
}

}  // namespace

TileSample::TileSample(const LongTiles& long_tiles, const GlobalTiles& global_tiles) {
  for (const TypeTiles* tiles : {&long_tiles.l2l, &long_tiles.l2g, &global_tiles.g2g, &global_tiles.g2l}) {
    g_groups[static_cast<std::size_t>(tiles->type)] = middle_group(*tiles);
  }
  g_sampled = true;
  reserve_labels(true);
}

TileSample::~TileSample() {
  g_sampled = false;
  reserve_labels(false);
}

const GroupSizes* sampled_group(AttentionType type) {
  return counting() && g_sampled ? &g_groups[static_cast<std::size_t>(type)] : nullptr;
}

}  // namespace etc::sparse
