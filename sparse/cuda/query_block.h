// A warp's share of work in the kernels by queries (forward, and backward for dq), and the steps of a key tile it sees.
#pragma once

#include <cstdint>

#include "sparse/cuda/pair_terms.h"

namespace etc::sparse::cuda {

// The head of entry i of a list if entries name heads, else the head of the block.
ETC_DEVICE std::int64_t head_of(const Span<const std::int32_t>& heads, std::int64_t i) {
  return heads.size > 0 ? simt::load(heads, i) : simt::block_y();
}

// A warp's part of a work item: one group of 16 queries of one example and head. A warp without a group computes
// nothing, but takes part in copies and barriers.
struct WarpQueries {
  QueryItem item;
  std::int64_t head = 0, group = 0;  // group: absolute
  std::uint64_t stream = 0;          // of dropout: one per example; bits depend only on query and key
  int warp = 0;

  // Block x: the item, unless one is given; block y: the head, unless items name heads; warp w: the item's group w.
  template <bool kOwnHeads, typename Params>
  static ETC_DEVICE WarpQueries of_block(const Params& p, std::int64_t item = simt::block_x()) {
    WarpQueries own;
    own.item = simt::load(p.work.items, item);
    own.head = kOwnHeads ? head_of(p.work.own_heads.items, item) : simt::block_y();
    own.warp = simt::warp_index();
    own.group = own.item.first_group + own.warp;
    if (p.dropout.keys.size > 0) own.stream = simt::load(p.dropout.keys, own.item.example);
    return own;
  }

  // The same item from the view of another warp of the block.
  ETC_DEVICE WarpQueries of_warp(int other) const {
    WarpQueries own = *this;
    own.warp = other;
    own.group = item.first_group + other;
    return own;
  }

  ETC_DEVICE bool working() const { return warp < item.groups; }
  // The group's first query within the item, its row, and the number of the item's queries from there on.
  ETC_DEVICE int first() const { return kGroup * warp; }
  ETC_DEVICE std::int64_t row() const { return item.query_row + first(); }
  ETC_DEVICE int valid() const { return item.queries - first(); }

  // Rows of a per-query operand: those of the item, and those of the warp's group.
  template <typename Element>
  ETC_DEVICE HeadRows<Element> rows_of_item(const Operand<Element>& operand) const {
    return rows_of_head(operand, head, item.query_row, item.queries);
  }
  template <typename Element>
  ETC_DEVICE HeadRows<Element> rows_of_group(const Operand<Element>& operand) const {
    return rows_of_head(operand, head, row(), valid());
  }
};

// The steps of one key tile that a warp's group sees; 8 at most, so that their scores stay in registers.
struct SeenTile {
  KeyTile tile;
  Chunk chunk;

  // Tile n of the work list. Tiles of key set 0 come before those of set 1; masks and labels are by set.
  static ETC_DEVICE SeenTile of(const WorkList& work, const WarpQueries& own, int n) {
    SeenTile seen;
    seen.tile = simt::load(work.tiles, n);
    const Cursor cursor = simt::load(work.cursors, n * kWarpsPerBlock + own.warp);
    seen.chunk = chunk_of(work.types[seen.tile.type], cursor, own.group, seen.tile.first_key);
    return seen;
  }
};

// Bit e: whether dropout keeps pair e of step s. Call only with dropout.
ETC_DEVICE unsigned kept_of_step(const WarpQueries& own, const SeenTile& seen, std::uint32_t threshold, int s) {
  const int key = seen.tile.first_key + seen.chunk.row[s] + (seen.tile.type == 0 ? 0 : own.item.keys[0]);
  return kept_pairs(own.stream, threshold, own.head, own.item.first_query + own.first(), key);
}

// Calls add(n) for every key tile of the warp's item in turn, while the tile is in the pipe, then together(n) in all
// warps. All warps run the waits and barriers, with or without a group, because copies and barriers are block-wide.
template <typename Pipe, typename Params, typename Add, typename Together>
ETC_DEVICE void for_each_tile(Pipe& pipe, const Params& p, const WarpQueries& own, const Add& add,
                              const Together& together) {
  const bool working = own.working();
  for (int n = own.item.tile_begin; n < own.item.tile_end; ++n) {
    pipe.arrive(p, own.item, own.head, n);
    if (working) add(n);
    together(n);
    pipe.leave(p, own.item, own.head, n);
  }
  simt::copy_async_wait<0>();
}
template <typename Pipe, typename Params, typename Add>
ETC_DEVICE void for_each_tile(Pipe& pipe, const Params& p, const WarpQueries& own, const Add& add) {
  for_each_tile(pipe, p, own, add, [](int) {});
}

}  // namespace etc::sparse::cuda
