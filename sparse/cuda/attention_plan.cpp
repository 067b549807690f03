#include "sparse/cuda/attention_plan.h"

#include <algorithm>
#include <limits>

#include "etc_core/base/integers.h"
#include "sparse/attention.h"

namespace etc::sparse::cuda {

namespace {

// Lists on the device are 32 bits wide where a batch cannot outgrow them.
std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}
std::int32_t narrow(std::int64_t i) {
  return static_cast<std::int32_t>(i);
}

// Larger than any key, so that minima over groups need no special case for exhausted groups.
constexpr std::int32_t kNoKey = std::numeric_limits<std::int32_t>::max();

// The lists of a batch, illustrated for 80 queries (5 groups) in a window:
//   items      block 0: groups 0-3, tiles 0 … 2;  block 1: group 4, tiles 3 … 4
//   tiles      first key of each, from the first step any of the item's groups sees on
//   cursors    per tile and warp: run and key within it where the warp's group begins
//   key items  per 64 keys: entries, one per group that sees any of them, with a cursor each
// The runs are not copied into the lists: kernels iterate over them, as the CPU's kernels do.

// Iterates over the steps of one group.
class StepWalk {
 public:
  StepWalk(const TypeTiles& tiles, std::int64_t group)
      : tiles_(&tiles), end_(tiles.run_offsets[group + 1]), cursor_{narrow(tiles.run_offsets[group]), 0} {}
  // First key of the step, kNoKey at the end.
  std::int32_t key() const { return cursor_.run < end_ ? tiles_->runs[cursor_.run].first_key + cursor_.key : kNoKey; }
  Cursor cursor() const { return cursor_; }
  // The next step of the run, or the first of the next run.
  void next() {
    cursor_.key += kRunStep;
    if (cursor_.key >= tiles_->runs[cursor_.run].keys) cursor_ = {cursor_.run + 1, 0};
  }

 private:
  const TypeTiles* tiles_;
  std::int64_t end_;
  Cursor cursor_;
};

// Appends the key tiles of one type that groups [first, first + count) see. Each tile begins at the first key not yet
// covered, so keys that no group sees cost nothing.
void add_tiles(const TypeTiles& tiles, int type, std::int64_t first, std::int64_t count, HostPlan& plan) {
  std::vector<StepWalk> walks;
  for (std::int64_t w = 0; w < count; ++w) walks.emplace_back(tiles, first + w);
  while (true) {
    KeyTile tile;
    tile.type = type;
    tile.first_key = kNoKey;
    for (const StepWalk& walk : walks) tile.first_key = std::min(tile.first_key, walk.key());
    if (tile.first_key == kNoKey) return;
    for (StepWalk& walk : walks) {
      // Where this warp begins in the tile; it finds the following steps itself.
      plan.cursors.push_back(walk.cursor());
      while (walk.key() != kNoKey && walk.key() < tile.first_key + kTileKeys) walk.next();
    }
    plan.tiles.push_back(tile);
    // Missing groups of a short item have empty cursors, which are never read.
    plan.cursors.resize(plan.tiles.size() * kWarpsPerBlock);
  }
}

void add_query_items(const TypeTiles (&types)[kKeySets], std::int64_t head, std::int64_t b, bool split_keys,
                     HostPlan& plan) {
  const std::int64_t first_row = types[0].query_offsets[at(b)];
  const std::int64_t queries = types[0].query_offsets[at(b + 1)] - first_row;
  const std::int64_t first_group = types[0].first_group(head) + types[0].group_offsets[at(b)];
  for (std::int64_t q = 0; q < queries; q += kBlockQueries) {
    QueryItem item;
    item.query_row = first_row + q;
    item.example = narrow(b);
    item.first_query = narrow(q);
    item.queries = narrow(std::min<std::int64_t>(kBlockQueries, queries - q));
    item.first_group = narrow(first_group + q / kGroup);
    item.groups = ceil_div(item.queries, kGroup);
    // The item's tiles of both key sets, one set after the other: one softmax covers all of them.
    const std::int64_t tile_begin = static_cast<std::int64_t>(plan.tiles.size());
    for (int t = 0; t < 2; ++t) {
      // First row and count of the example's keys, which bound its tiles.
      item.key_row[t] = types[t].key_offsets[at(b)];
      item.keys[t] = narrow(types[t].key_offsets[at(b + 1)] - item.key_row[t]);
      // If only the other type has tiles per head, this one has no columns (check_supported).
      if (types[t].columns > 0) add_tiles(types[t], t, item.first_group, item.groups, plan);
    }
    const std::int64_t tile_end = static_cast<std::int64_t>(plan.tiles.size());
    // Split by tiles, not by keys: an item of hard g2l sees few tiles, regardless of the document's length.
    const bool split = split_keys && tile_end - tile_begin > kSplitTiles;
    if (!split) {
      item.tile_begin = narrow(tile_begin);
      item.tile_end = narrow(tile_end);
      plan.items.push_back(item);
      continue;
    }
    // Each split is an item with a slot; CombineKernel adds the slots in order.
    SplitQueries whole{item.query_row, item.queries, narrow(plan.query_slots), 0, 0};
    for (std::int64_t n = tile_begin; n < tile_end; n += kSplitTiles, ++whole.slots) {
      item.tile_begin = narrow(n);
      item.tile_end = narrow(std::min<std::int64_t>(tile_end, n + kSplitTiles));
      item.slot = narrow(plan.query_slots++);
      plan.items.push_back(item);
    }
    plan.split_queries.push_back(whole);
  }
}

void add_key_items(const TypeTiles (&types)[kKeySets], int t, std::int64_t head, std::int64_t b, HostPlan& plan) {
  const TypeTiles& tiles = types[t];
  const std::int64_t keys = tiles.key_offsets[at(b + 1)] - tiles.key_offsets[at(b)];
  // Per key tile: the groups that see it, in the order in which their gradients are added.
  std::vector<std::vector<KeyEntry>> entries(at(ceil_div(keys, kTileKeys)));
  const std::int64_t before = tiles.first_group(head);  // groups of the preceding heads
  for (std::int64_t group = before + tiles.group_offsets[at(b)]; group < before + tiles.group_offsets[at(b + 1)];
       ++group) {
    for (StepWalk walk(tiles, group); walk.key() != kNoKey; walk.next()) {
      // A step may reach into the next tile, but not past the last key.
      const std::int64_t last = std::min<std::int64_t>(walk.key() + kRunStep, keys) - 1;
      for (std::int64_t n = walk.key() / kTileKeys; n <= last / kTileKeys; ++n) {
        auto& list = entries[at(n)];
        if (list.empty() || list.back().group != group) list.push_back({narrow(group), walk.cursor()});
      }
    }
  }
  KeyItem item;
  item.type = t;
  item.example = narrow(b);
  item.query_row = tiles.query_offsets[at(b)];
  item.queries = narrow(tiles.query_offsets[at(b + 1)] - item.query_row);
  item.first_group = narrow(before + tiles.group_offsets[at(b)]);
  for (int other = 0; other < 2; ++other) {
    // Counts of both sets: dropout numbers the keys of set 1 after those of set 0.
    item.example_keys[other] = narrow(types[other].key_offsets[at(b + 1)] - types[other].key_offsets[at(b)]);
  }
  for (std::size_t n = 0; n < entries.size(); ++n) {
    item.first_key = narrow(static_cast<std::int64_t>(n) * kTileKeys);
    item.key_row = tiles.key_offsets[at(b)] + item.first_key;
    item.keys = narrow(std::min<std::int64_t>(kTileKeys, keys - item.first_key));
    const std::int64_t begin = static_cast<std::int64_t>(plan.key_entries.size());
    const auto count = static_cast<std::int64_t>(entries[n].size());
    plan.key_entries.insert(plan.key_entries.end(), entries[n].begin(), entries[n].end());
    // A tile that few groups see is one block's work, which writes the gradients directly.
    item.slot = -1;
    SplitKeys whole{item.key_row, t, item.keys, narrow(plan.key_slots), 0};
    // At least one item: keys that no group sees have gradients of zero, which must be written.
    for (std::int64_t first = 0; first == 0 || first < count; first += kSplitEntries, ++whole.slots) {
      item.entry_begin = narrow(begin + first);
      item.entry_end = narrow(begin + std::min<std::int64_t>(count, first + kSplitEntries));
      if (count > kSplitEntries) item.slot = narrow(plan.key_slots++);
      plan.key_items.push_back(item);
    }
    if (whole.slots > 1) plan.split_keys.push_back(whole);
  }
}

// Reserves memory for an array and copies the array there.
class Upload {
 public:
  // With a null carver nothing is copied: the first pass only counts bytes.
  explicit Upload(simt::Carver& carver) : carver_(carver) {}
  template <typename T>
  Span<const T> add(const T* data, std::int64_t count) {
    const Span<T> place = carver_.take<T>(count);
    if (place.data != nullptr) simt::copy_to_device(place.data, data, count * static_cast<std::int64_t>(sizeof(T)));
    return {place.data, count};
  }
  template <typename T>
  Span<const T> add(const std::vector<T>& values) {
    return add(values.data(), static_cast<std::int64_t>(values.size()));
  }

 private:
  simt::Carver& carver_;
};

// Called twice, first to count bytes and then to copy, so the order of arrays must be the same.
void lay_out(const HostPlan& host, const TypeTiles (&types)[kKeySets], simt::Carver& carver, DevicePlan& plan) {
  Upload upload(carver);
  for (int t = 0; t < 2; ++t) {
    const TypeTiles& tiles = types[t];
    // Buffers are padded to 64-byte lines, so their sizes are not those of the arrays.
    const std::int64_t groups = tiles.heads * tiles.group_offsets.back(), runs = tiles.run_offsets[groups];
    TypeView& view = plan.work.types[t];
    // The stride between heads. With tiles per head, the columns of a type already cover all heads.
    view.columns = tiles.heads == 1 ? tiles.columns : 0;
    view.run_offsets = upload.add(tiles.run_offsets.data(), groups + 1);
    view.runs = upload.add(tiles.runs.data(), runs);
    view.visible = upload.add(tiles.visible.data(), tiles.columns);
    if (tiles.distance.used()) {
      view.label = upload.add(host.distances[t].label);
      view.mixed = upload.add(host.distances[t].mixed);
      view.distance.rows = upload.add(host.distances[t].rows);
      view.distance.shifts = upload.add(tiles.distance.shifts);
      view.distance.first = tiles.distance.first;
    } else {
      view.label = upload.add(tiles.label.data(), tiles.relative ? tiles.columns : 0);
      view.mixed = upload.add(tiles.mixed.data(), tiles.mixed.size());
    }
  }
  plan.work.items = upload.add(host.items);
  plan.work.tiles = upload.add(host.tiles);
  plan.work.cursors = upload.add(host.cursors);
  plan.work.split_queries = upload.add(host.split_queries);
  plan.work.key_items = upload.add(host.key_items);
  plan.work.key_entries = upload.add(host.key_entries);
  plan.work.split_keys = upload.add(host.split_keys);
  plan.work.own_heads.items = upload.add(host.item_heads);
  plan.work.own_heads.split_queries = upload.add(host.split_query_heads);
  plan.work.own_heads.key_items = upload.add(host.key_item_heads);
  plan.work.own_heads.split_keys = upload.add(host.split_key_heads);
  plan.group_rows = upload.add(host.group_rows);
  plan.group_sizes = upload.add(host.group_sizes);
}

// Codes are those of the tiles; only the labels of mixed columns are stored differently, as rows of bytes.
ListedDistances list_distances(const TypeTiles& tiles) {
  ListedDistances listed;
  const DistanceLabels& labels = tiles.distance;
  if (!labels.used()) return listed;
  // `lanes` stores them from the farthest right to the left, with kGroup - 1 extra ones at either end.
  for (std::int64_t n = labels.lanes.size() - kGroup; n >= kGroup - 1; --n) listed.rows.push_back(labels.lanes[n]);
  if (tiles.relative_labels > kMostListedLabels) return listed;
  for (std::int64_t place = 0; place < labels.codes.size(); ++place) {
    for (int i = 0; i < kGroup; ++i) listed.mixed.push_back(static_cast<std::uint8_t>(labels.lanes[place + i]));
  }
  listed.label.resize(at(tiles.columns));
  for (std::int64_t b = 0; b < tiles.examples(); ++b) {
    for (std::int64_t group = tiles.group_offsets[at(b)]; group < tiles.group_offsets[at(b + 1)]; ++group) {
      const std::int64_t first_query = (group - tiles.group_offsets[at(b)]) * kGroup;
      for (std::int64_t r = tiles.run_offsets[group]; r < tiles.run_offsets[group + 1]; ++r) {
        const TileRun& run = tiles.runs[r];
        const std::int64_t distance = run.first_key + labels.shift(b) - first_query;
        for (std::int64_t j = 0; j < run.keys; ++j) {
          listed.label[at(run.column + j)] = labels.codes[labels.place(distance + j)];
        }
      }
    }
  }
  return listed;
}

// For tiles per head: appends the lists head after head, and records the head of each entry.
void add_items_of_heads(const AttentionTiles& tiles, HostPlan& plan) {
  for (std::int64_t head = 0; head < tiles.types[0].heads; ++head) {
    for (std::int64_t b = 0; b < tiles.types[0].examples(); ++b) {
      add_query_items(tiles.types, head, b, tiles.op->partition == Partition::keys, plan);
      for (int t = 0; t < 2; ++t) add_key_items(tiles.types, t, head, b, plan);
    }
    plan.item_heads.resize(plan.items.size(), narrow(head));
    plan.split_query_heads.resize(plan.split_queries.size(), narrow(head));
    plan.key_item_heads.resize(plan.key_items.size(), narrow(head));
    plan.split_key_heads.resize(plan.split_keys.size(), narrow(head));
  }
}

}  // namespace

HostPlan make_plan(const AttentionTiles& tiles) {
  const TypeTiles& first = tiles.types[0];
  const bool split_keys = tiles.op->partition == Partition::keys;
  HostPlan plan;
  for (std::int64_t b = 0; b < first.examples(); ++b) {
    const std::int64_t row = first.query_offsets[at(b)], queries = first.query_offsets[at(b + 1)] - row;
    // Rows of each group, for the table of terms: [groups].
    for (std::int64_t q = 0; q < queries; q += kGroup) {
      plan.group_rows.push_back(row + q);
      plan.group_sizes.push_back(narrow(std::min<std::int64_t>(kGroup, queries - q)));
    }
    if (first.heads > 1) continue;
    add_query_items(tiles.types, 0, b, split_keys, plan);
    for (int t = 0; t < 2; ++t) add_key_items(tiles.types, t, 0, b, plan);
  }
  if (first.heads > 1) add_items_of_heads(tiles, plan);
  for (int t = 0; t < kKeySets; ++t) plan.distances[t] = list_distances(tiles.types[t]);
  return plan;
}

std::shared_ptr<const DevicePlan> plan_of(const AttentionTiles& tiles) {
  std::shared_ptr<const void>& kept = tiles.plans[static_cast<std::size_t>(Device::cuda)];
  if (kept != nullptr) return std::static_pointer_cast<const DevicePlan>(kept);
  // Once per batch, not per layer, because the host builds the lists.
  const HostPlan host = make_plan(tiles);
  auto plan = std::make_shared<DevicePlan>();
  simt::Carver counter(nullptr);
  lay_out(host, tiles.types, counter, *plan);
  plan->memory = simt::device_bytes(counter.used(), Purpose::labels);
  simt::Carver carver(plan->memory.data());
  lay_out(host, tiles.types, carver, *plan);
  plan->query_slots = host.query_slots;
  plan->key_slots = host.key_slots;
  kept = plan;
  return plan;
}

}  // namespace etc::sparse::cuda
