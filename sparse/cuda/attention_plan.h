// The work lists of an operator's batch: which blocks a launch has and what each of them sees. Made once per batch from
// its tiles, on the host, and kept on the device.
//
// Every list is a function of one example's own tiles, counted from its first token: neighbours in the batch do not
// change what is summed in which order.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "etc_core/base/cuda/device_array.h"
#include "sparse/cuda/attention_params.h"
#include "sparse/visible_tiles.h"

namespace etc::sparse::cuda {

// Labels of a type by distance: the map, for pairwise terms, and, if they are few, as if they had been listed
// (TypeTiles::label, mixed). Empty for other types.
struct ListedDistances {
  std::vector<std::int32_t> rows;    // [distances], by rising distance
  std::vector<std::uint32_t> label;  // [columns]
  std::vector<std::uint8_t> mixed;   // [distances + kGroup - 1, kGroup]: a row for each place in DistanceLabels::lanes
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
  // As HeadLists: filled where every head has tiles of its own.
  std::vector<std::int32_t> item_heads, split_query_heads, key_item_heads, split_key_heads;
  std::vector<std::int64_t> group_rows;   // [groups]
  std::vector<std::int32_t> group_sizes;  // [groups]
  ListedDistances distances[kKeySets];
  std::int64_t query_slots = 0, key_slots = 0;
};

// With Partition::keys a query's keys are shared among blocks: such queries are few and see much.
HostPlan make_plan(const AttentionTiles& tiles);

// The same on the device, with the tiles.
struct DevicePlan {
  WorkList work;
  simt::Span<const std::int64_t> group_rows;   // [groups]
  simt::Span<const std::int32_t> group_sizes;  // [groups]
  std::int64_t query_slots = 0, key_slots = 0;
  // What all spans above point into.
  Bytes memory;
};

// The plan of these tiles; made when first asked for, kept with them.
std::shared_ptr<const DevicePlan> plan_of(const AttentionTiles& tiles);

}  // namespace etc::sparse::cuda
