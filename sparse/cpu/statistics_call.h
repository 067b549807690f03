// Division of a call of attention_statistics: tasks, their keys, and the slots for their sums. A task is a range of
// queries of one head of one example and has all their keys, so no partial softmaxes need to be combined.
#pragma once

#include <algorithm>
#include <cstdint>

#include "etc_core/base/integers.h"
#include "sparse/attention_statistics.h"
#include "sparse/cpu/task_list.h"
#include "sparse/cpu/tile_walk.h"
#include "sparse/visible_tiles.h"

namespace etc::sparse {

inline constexpr std::int64_t kStatisticsKeys = 64;  // of a key block
inline constexpr std::int64_t kQueryBlock = 512;     // queries of a task

// Inputs for the loops. Values are not used, but panels copy them, so they are set to the keys.
inline AttentionInputs without_values(AttentionInputs in) {
  for (KeySet& keys : in.keys) keys.v = keys.k;
  in.compute = ComputeType::fp32;
  in.dropout = {};
  return in;
}

// Layout of a task's sums in its slot, in doubles.
struct StatisticsSlot {
  std::int64_t labels = 0, distances = 0, of_labels[kKeySets] = {0, 0}, of_distances = 0, size = 0;

  explicit StatisticsSlot(const AttentionStatistics& args)
      : labels(args.inputs.relative.labels), distances(2 * args.reach + 1) {
    for (int t = 0; t < kKeySets; ++t) {
      of_labels[t] = size;
      if (args.label_mass[t] != nullptr) size += args.groups * labels;
    }
    of_distances = size;
    if (args.distance_mass != nullptr) size += args.groups * distances;
  }
};

// A call, and how it is divided.
struct StatisticsCall {
  explicit StatisticsCall(const AttentionStatistics& given)
      : args(given),
        own(without_values(given.inputs)),
        before(without_values(given.before == nullptr ? given.inputs : *given.before)),
        slot(given),
        list(own.heads) {
    for (std::int64_t b = 0; b < tiles(0).examples(); ++b) {
      list.add(ceil_div(rows_of(tiles(0).query_offsets, b).count, kQueryBlock), slot.size);
    }
    for (int t = 0; t < kKeySets; ++t) carries = carries || args.scores[static_cast<std::size_t>(t)].running != nullptr;
  }

  const TypeTiles& tiles(int t) const { return own.tiles->types[t]; }
  bool compares() const { return args.before != nullptr; }
  // Whether scores of another head of this layer are needed to compute C of the layer before.
  bool needs_shifted() const { return compares() && carries && args.head_shift != 0; }
  // Whether scores of the layer before are needed: for types that do not carry scores, and for own_jsd.
  bool needs_before() const { return compares() && (args.head_shift == 0 || !all_carry()); }
  bool all_carry() const {
    return args.scores[0].running != nullptr && (args.scores[1].running != nullptr || tiles(1).columns == 0);
  }
  bool compares_own() const { return compares() && carries && args.head_shift == 0; }
  // Number of key positions relative to a group's first query that are within reach of some query of the group.
  std::int64_t distance_rows() const { return 2 * args.reach + kGroup; }
  std::int64_t head_before(std::int64_t head) const { return (head + args.head_shift) % own.heads; }

  Task task(std::int64_t number, std::int64_t head_shift) const;
  TaskSizes sizes() const;
  KeyRange keys_of(int t, std::int64_t b, std::int64_t first_query, std::int64_t end_query) const;

  const AttentionStatistics& args;
  AttentionInputs own, before;
  StatisticsSlot slot;
  TaskList list;
  bool carries = false;
};

inline KeyRange StatisticsCall::keys_of(int t, std::int64_t b, std::int64_t first_query, std::int64_t end_query) const {
  const RowRange keys = rows_of(tiles(t).key_offsets, b);
  KeyRange range{t, keys.first, 0, keys.count, 0};
  if (!tiles(t).window) return range;
  const std::int64_t position = tiles(t).first_position(b);
  range.begin = std::max<std::int64_t>(0, position + first_query - tiles(t).before);
  range.end = std::min(keys.count, position + end_query + tiles(t).after);
  return range;
}

// Tasks are ordered by example, then block, then head, as in forward.
inline Task StatisticsCall::task(std::int64_t number, std::int64_t head_shift) const {
  const std::int64_t b = list.example_of(number), head = number % own.heads, index = number / own.heads;
  const RowRange queries = rows_of(tiles(0).query_offsets, b);
  Task task;
  task.example = b;
  task.head = (head + head_shift) % own.heads;
  task.query_row = queries.first;
  task.first_query = index * kQueryBlock;
  task.end_query = std::min(queries.count, task.first_query + kQueryBlock);
  task.first_group = tiles(0).group_offsets[static_cast<std::size_t>(b)];
  for (int t = 0; t < kKeySets; ++t) task.keys[t] = keys_of(t, b, task.first_query, task.end_query);
  task.key_ranges = kKeySets;
  task.slot = list.slot(b, head, index);
  return task;
}

inline TaskSizes StatisticsCall::sizes() const {
  TaskSizes sizes;
  for (std::int64_t b = 0; b < tiles(0).examples(); ++b) {
    const std::int64_t queries = rows_of(tiles(0).query_offsets, b).count;
    for (std::int64_t first = 0; first < queries; first += kQueryBlock) {
      for (int t = 0; t < kKeySets; ++t) {
        const KeyRange range = keys_of(t, b, first, std::min(queries, first + kQueryBlock));
        sizes.panel_keys[t] = std::max(sizes.panel_keys[t], range.end - range.begin);
      }
    }
  }
  sizes.panels = kKeySets;
  sizes.columns = std::max<std::int64_t>(tiles(0).max_group_columns + tiles(1).max_group_columns, kRunStep);
  sizes.blocks = max_key_blocks(tiles(0), kStatisticsKeys) + max_key_blocks(tiles(1), kStatisticsKeys);
  return sizes;
}

}  // namespace etc::sparse
