// The work lists of an operator's batch: the blocks of a launch and what each of them sees. Built on the host once per
// batch from its tiles, and kept on the device.
//
// Every list is a function of one example's own tiles, counted from its first token, so that other examples in the
// batch do not change which numbers are summed in which order.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "etc_core/base/cuda/device_array.h"
#include "sparse/cuda/attention_params.h"
#include "sparse/visible_tiles.h"

namespace etc::sparse::cuda {

// Labels of a type that are given by distance: the map, for pairwise terms, and, if there are few rows, the same labels
// in listed form (TypeTiles::label, mixed). Empty for other types.
struct ListedDistances {
  std::vector<std::int32_t> rows;    // [distances], by rising distance
  std::vector<std::uint32_t> label;  // [columns]
  std::vector<std::uint8_t> mixed;   // [distances + kGroup - 1, kGroup]: one row per place in DistanceLabels::lanes
};

// The lists, still on the host.
struct HostPlan {
  std::vector<QueryItem> items;
  std::vector<KeyTile> tiles;
  std::vector<Cursor> cursors;
  std::vector<SplitQueries> split_queries;
  std::vector<KeyItem> key_items;
  std::vector<KeyEntry> key_entries;
  std::vector<SplitKeys> split_keys;
  // As HeadLists: filled if every head has its own tiles.
  std::vector<std::int32_t> item_heads, split_query_heads, key_item_heads, split_key_heads;
  std::vector<std::int64_t> group_rows;   // [groups]
  std::vector<std::int32_t> group_sizes;  // [groups]
  ListedDistances distances[kKeySets];
  std::int64_t query_slots = 0, key_slots = 0;
};

// With Partition::keys a query's keys are divided among blocks, because such queries are few and see many keys.
HostPlan make_plan(const AttentionTiles& tiles);

// The same on the device, with the tiles.
struct DevicePlan {
  WorkList work;
  simt::Span<const std::int64_t> group_rows;   // [groups]
  simt::Span<const std::int32_t> group_sizes;  // [groups]
  std::int64_t query_slots = 0, key_slots = 0;
  // The memory that all spans above point into.
  Bytes memory;
};

// The plan of these tiles, built on first use and kept with them.
std::shared_ptr<const DevicePlan> plan_of(const AttentionTiles& tiles);

}  // namespace etc::sparse::cuda
