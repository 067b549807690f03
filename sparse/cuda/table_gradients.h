// Gradients of the tables of pairwise terms, computed in the kernel by queries. A block processes the items of one part
// of the batch in turn and adds each tile's pairs to the part's own sums in global memory:
//
//   sums[r] += sum_{label_ij = r} (ds_ij q_i | ds_ij k_j | ds_ij q_i⊙k_j | weights_ij dout_i | ds_ij)
//
// A thread owns columns of a row, so no two threads add to the same number and the order is fixed. TableSumKernel adds
// the parts. The more rows the tables have, the larger the parts, so that all sums take a few times the memory of q.
#pragma once

#include <cstdint>

#include "sparse/cuda/pairwise_terms.h"

namespace etc::sparse::cuda {

// The data of a tile's pairs in shared memory, of all warps.
template <typename Products>
struct TilePairs {
  typename Products::Tile q, dout, keys;  // [kBlockQueries, stride], [kTileRows, stride]
  SharedTile<float> ds, weights;          // [kWarpsPerBlock, kTileKeys, kTableStride]
  int stride = 0;
};

template <typename Products>
struct TableGradients {
  using Params = BackwardParams<typename Products::Element>;

  // A thread's column in the rows of sums, and the factors of its pairs.
  struct Column {
    int at = 0, d = 0;
    bool query = false, key = false, value = false;
  };

  static ETC_DEVICE Column column_of(const TableColumns& columns, int head_size, int c) {
    const auto within = [&](int first) { return first >= 0 && c >= first && c < first + head_size; };
    Column own;
    own.at = c;
    if (within(columns.rel)) own = {c, c - columns.rel, true, false, false};
    if (within(columns.rel_k)) own = {c, c - columns.rel_k, false, true, false};
    if (within(columns.product)) own = {c, c - columns.product, true, true, false};
    if (within(columns.rel_v)) own = {c, c - columns.rel_v, false, false, true};
    return own;
  }

  // Index of the part's sums for label 0 of a head.
  static ETC_DEVICE std::int64_t first_sum(const Params& p, std::int64_t head) {
    return (simt::block_x() * p.sizes.heads + head) * p.sizes.table_rows * p.partials.columns.width;
  }

  // Run by the whole block before the part's first item: zeroes the sums of its head, or of all heads if items name
  // their heads. A sync must follow.
  static ETC_DEVICE void clear(const Params& p) {
    const bool all = p.work.own_heads.items.size > 0;
    const std::int64_t first = first_sum(p, all ? 0 : simt::block_y());
    const std::int64_t size = (all ? p.sizes.heads : 1) * p.sizes.table_rows * p.partials.columns.width;
    for (std::int64_t i = simt::thread_index(); i < size; i += kBlockThreads) {
      simt::store(p.partials.sums, first + i, 0.0f);
    }
  }

  // Adds the pairs of tile n of an item. Run by the whole block after all warps have staged their pairs.
  static ETC_DEVICE void add_tile(const Params& p, const WarpQueries& own, int n, const TilePairs<Products>& pairs) {
    if (!p.work.types[simt::load(p.work.tiles, n).type].labelled()) return;
    for (int g = 0; g < own.item.groups; ++g) {
      const WarpQueries group = own.of_warp(g);
      const SeenTile seen = SeenTile::of(p.work, group, n);
      for (int c = simt::thread_index(); c < p.partials.columns.width; c += kBlockThreads) {
        const Column column = column_of(p.partials.columns, p.sizes.head_size, c);
        ETC_KEEP_LOOP
        for (int s = 0; s < seen.chunk.count; ++s) add_step(p, group, seen, s, column, pairs);
      }
    }
  }

 private:
  // Adds one column's share of a step's pairs. Pairs on a diagonal have the same distance and mostly the same label, so
  // they are summed in a register.
  static ETC_DEVICE void add_step(const Params& p, const WarpQueries& group, const SeenTile& seen, int s,
                                  const Column& column, const TilePairs<Products>& pairs) {
    const StepPlace at = place_of_step(p.work, group, seen, s);
    const TypeView& type = p.work.types[at.type];
    const auto& stage = column.value ? pairs.weights : pairs.ds;
    const int staged = (group.warp * kTileKeys + kRunStep * s) * kTableStride;
    int current = -1;
    float sum = 0.0f;
    ETC_KEEP_LOOP
    for (int diagonal = 1 - kGroup; diagonal < kRunStep; ++diagonal) {
      ETC_KEEP_LOOP
      for (int i = diagonal < 0 ? -diagonal : 0; i < kGroup && i + diagonal < kRunStep; ++i) {
        const int j = i + diagonal;
        const float weight = stage.load(staged + j * kTableStride + i);
        if (weight == 0.0f) continue;  // masked and dropped pairs
        const int label = label_of_pair(type, at, i, j);
        if (label != current) {
          if (current >= 0) add(p, group.head, current, column, sum);
          current = label;
          sum = 0.0f;
        }
        sum = simt::fma(weight, factor_of(column, pairs, group.first() + i, seen.chunk.row[s] + j), sum);
      }
    }
    if (current >= 0) add(p, group.head, current, column, sum);
  }

  // The factor of the pair of a query of the item and a key of the tile.
  static ETC_DEVICE float factor_of(const Column& column, const TilePairs<Products>& pairs, int query, int key) {
    if (column.value) return pairs.dout.load(query * pairs.stride + column.d);
    const float q = column.query ? pairs.q.load(query * pairs.stride + column.d) : 1.0f;
    return column.key ? q * pairs.keys.load(key * pairs.stride + column.d) : q;
  }

  static ETC_DEVICE void add(const Params& p, std::int64_t head, int label, const Column& column, float sum) {
    const std::int64_t place = first_sum(p, head) + std::int64_t{label} * p.partials.columns.width + column.at;
    simt::store(p.partials.sums, place, simt::load(p.partials.sums, place) + sum);
  }
};

}  // namespace etc::sparse::cuda
