// Attention backward by queries: dq, dC and the gradients of the relative terms. Same launch geometry as the forward: a
// block is a work item and a head, a warp a group of 16 queries; key tiles are double-buffered.
//
//   per pair: ds, dC, C rewound          (step_gradients.h)
//   forward: s = (q·k + q·rel[label] + rel_bias[label]) / sqrt(D); so with ds = dC / sqrt(D)
//     dq += ds k,  dtable[label] += ds     (RelativeKernel adds dtable to dq and the tables)
#pragma once

#include <cstdint>

#include "sparse/cuda/query_block.h"
#include "sparse/cuda/step_gradients.h"
#include "sparse/cuda/table_gradients.h"
#include "sparse/cuda/tile_pipe.h"

namespace etc::sparse::cuda {

// Shared memory of the kernel. At D = 64 in bf16 with R = 32: 41,472 bytes of key tiles, 20,480 of stage, 10,240 of
// labels and 16,384 of label sums: 88,576, so that a multiprocessor holds two blocks with sm_90 and one with sm_80.
template <typename Products>
struct QueryGradientTiles {
  TilePipe<Products> pipe;
  typename Products::Tile q, dout;  // [kBlockQueries, stride]; staged only
  SharedTile<float> stage;          // [kWarpsPerBlock, kTileKeys, kTableStride]
  SharedTile<float> table;          // [kWarpsPerBlock, R, kTableStride]
  SharedTile<float> sums;           // [kWarpsPerBlock, R, 32]: one column per lane
  SharedTile<float> weights;        // as stage; with pairwise terms only

  template <typename Arena>
  static constexpr QueryGradientTiles take(Arena& arena, const AttentionSizes& sizes) {
    QueryGradientTiles tiles;
    tiles.pipe = TilePipe<Products>::take(arena, sizes);
    if (Products::kStagedQueries) {
      tiles.q = arena.template take<typename Products::Value>(kBlockQueries * Products::stride(sizes.head_size));
      tiles.dout = arena.template take<typename Products::Value>(kBlockQueries * Products::stride(sizes.head_size));
    }
    tiles.stage = arena.template take<float>(kWarpsPerBlock * kTileKeys * kTableStride);
    tiles.table = arena.template take<float>(kWarpsPerBlock * sizes.shared_labels * kTableStride);
    tiles.sums = arena.template take<float>(kWarpsPerBlock * sizes.shared_labels * simt::kWarp);
    const int paired = sizes.pairwise ? kWarpsPerBlock * kTileKeys * kTableStride : 0;
    tiles.weights = arena.template take<float>(paired);
    return tiles;
  }
};

// One block: 64 queries of one example and head, and the key tiles they see; a warp processes 16 of the queries. What a
// thread keeps over the whole loop, for its rows lane/4 and lane/4 + 8 of the warp's group:
//   query, dout  the operands of q·k and dout·v
//   lse, delta   of its two rows
//   dq           kTiles accumulators of 16x8
// Results: dq without the share of the relative vectors, dC, C rewound, and the label sums.
template <typename Products, typename Terms>
struct QueryGradientKernel : simt::BlockOf<kBlockThreads, kMaxTileBytes> {
  using Params = BackwardParams<typename Products::Element>;
  static const char* name() { return "attention backward, queries"; }

  // A thread's state over the loop of its warp.
  struct Warp {
    WarpQueries own;
    Terms terms;
    typename Terms::Sums sums;
    typename Products::Query query, dout;
    RowStatistics rows;
    SharedTile<float> stage;        // [kTileKeys, kTableStride] of the warp
    SharedTile<float> weights;      // as stage; with pairwise terms only
    float dq[Products::kTiles][4];  // [16 queries, 8 kTiles components] over the warp
  };

  // Computes ds of the chunk's steps from q·k and dout·v; ds stays in registers.
  static ETC_DEVICE void gradients_of_tile(const Params& p, const TilePipe<Products>& pipe, const SeenTile& seen,
                                           const Warp& w, float (&ds)[kTileSteps][4]) {
    const int type = seen.tile.type, head_size = p.sizes.head_size;
    const ScoreView& scores = p.scores[type];
    // If scores are carried and need no rewinding, s is not computed.
    const bool needs_scores = scores.gradient_mode == ScoreGradientMode::none || scores.rewind;
    ETC_UNROLL
    for (int s = 0; s < kTileSteps; ++s) {
      if (s >= seen.chunk.count) break;
      StepPairs step{type, w.own.head, seen.chunk.column[s]};
      float score[4] = {0.0f, 0.0f, 0.0f, 0.0f}, dp[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      if (needs_scores) {
        Products::scores(w.query, pipe.keys(), seen.chunk.row[s], head_size, score);
        if constexpr (Terms::kPairwise) Terms::join_scores(p, place_of_step(p.work, w.own, seen, s), score);
        add_terms(w.terms, p.work.types[type], step.column, p.sizes.scale, score);
      }
      Products::scores(w.dout, pipe.values(), seen.chunk.row[s], head_size, dp);
      if constexpr (Terms::kPairwise) Terms::join_gradients(p, place_of_step(p.work, w.own, seen, s), dp);
      if (p.dropout.keys.size > 0) step.kept = kept_of_step(w.own, seen, p.dropout.threshold, s);
      const StepGradients gradients = step_gradients<ScoreUse::updates>(p, step, w.rows, score, dp);
      ETC_UNROLL
      for (int e = 0; e < 4; ++e) ds[s][e] = gradients.ds[e];
      if constexpr (Terms::kPairwise) stage_step(w.weights, gradients.weights, s);
    }
  }

  // Processes tile n, which is in the pipe, for one warp.
  static ETC_DEVICE void add_tile(const Params& p, const TilePipe<Products>& pipe, int n, Warp& w) {
    const SeenTile seen = SeenTile::of(p.work, w.own, n);
    float ds[kTileSteps][4] = {};  // [16 queries, 64 keys] over the warp
    gradients_of_tile(p, pipe, seen, w, ds);
    // The stage transposes accumulators into columns by query, for fp32 products and for label sums.
    const TypeView& type = p.work.types[seen.tile.type];
    const bool summed = w.sums.takes(type);
    if (Products::kStagedWeights || summed) {
      stage_chunk(w.stage, ds, seen.chunk);
      simt::sync_warp();
    }
    if constexpr (Terms::kPairwise) {
      if (type.labelled()) {
        return Terms::template add_query_gradients<Products>(p, w.own, seen, w.stage, pipe.keys(), w.dq);
      }
    }
    // dq += ds · keys of the tile
    Products::weighted_sum(ds, seen.chunk, pipe.keys(), p.sizes.head_size, w.stage, w.dq);
    if (summed) w.sums.add_chunk(type, seen.chunk, w.stage);
  }

  static ETC_DEVICE void run(const Params& p) {
    SharedArena arena;
    auto shared = QueryGradientTiles<Products>::take(arena, p.sizes);
    if constexpr (Terms::kPairwise) {
      // A block processes one part of the items, whose pairs are added to the same sums of the tables.
      TableGradients<Products>::clear(p);
      const std::int64_t first = simt::block_x() * p.partials.items;
      for (std::int64_t n = first; n < first + p.partials.items && n < p.work.items.size; ++n) {
        simt::sync_block();
        run_item(p, shared, n);
      }
    } else {
      run_item(p, shared, simt::block_x());
    }
  }

  static ETC_DEVICE void run_item(const Params& p, QueryGradientTiles<Products>& shared, std::int64_t index) {
    Warp w;
    w.own = WarpQueries::of_block<Terms::kPairwise>(p, index);
    const int stage = w.own.warp * kTileKeys * kTableStride;
    w.stage = shared.stage.part(stage, kTileKeys * kTableStride);
    if constexpr (Terms::kPairwise) w.weights = shared.weights.part(stage, kTileKeys * kTableStride);

    // Before the loop, start all copies at once: queries and their gradients, the first tile, the terms' table.
    if (Products::kStagedQueries) {
      const Team block{simt::thread_index(), kBlockThreads};
      const int head_size = p.sizes.head_size;
      Products::copy_rows(shared.q, w.own.rows_of_item(p.q), kBlockQueries, head_size, block);
      Products::copy_rows(shared.dout, w.own.rows_of_item(p.dout), kBlockQueries, head_size, block);
    }
    shared.pipe.begin(p, w.own.item, w.own.head);
    w.sums = Terms::Sums::of(p, w.own.item, w.own.head, shared.sums);
    if (w.own.working()) {
      w.terms.load(p, shared.table, w.own.head, w.own.group);
      w.sums.clear();
    }
    Products::load_query(w.query, shared.q, w.own.first(), w.own.rows_of_group(p.q));
    Products::load_query(w.dout, shared.dout, w.own.first(), w.own.rows_of_group(p.dout));
    w.rows = load_row_statistics(p, w.own.head, w.own.row(), w.own.valid());
    clear(w.dq);

    const auto add = [&](int n) { add_tile(p, shared.pipe, n, w); };
    if constexpr (Terms::kPairwise) {
      for_each_tile(shared.pipe, p, w.own, add, [&](int n) {
        simt::sync_block();  // the pairs of all warps are staged
        TableGradients<Products>::add_tile(p, w.own, n,
                                           {shared.q, shared.dout, shared.pipe.keys(), shared.stage, shared.weights,
                                            Products::stride(p.sizes.head_size)});
      });
    } else {
      for_each_tile(shared.pipe, p, w.own, add);
    }
    simt::sync_block();
    if (!w.own.working()) return;
    finish(p, w.own, w.dq);
    w.sums.flush();
  }

  // Whole items write dq, parts of split items write their slot.
  static ETC_DEVICE void finish(const Params& p, const WarpQueries& own, const float (&dq)[Products::kTiles][4]) {
    const int head_size = p.sizes.head_size, width = head_size + p.sizes.labels;
    const bool whole = own.item.slot < 0;
    const std::int64_t slots = (static_cast<std::int64_t>(own.item.slot) * p.sizes.heads + own.head) * kBlockQueries;
    ETC_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int query = own.first() + simt::lane_index() / 4 + 8 * half;
      if (query >= own.item.queries) continue;
      const std::int64_t row = own.item.query_row + query;
      const RowPlace to =
          whole ? place_of(p.dq, row, own.head, head_size) : scratch_place(p.query_slots, (slots + query) * width);
      store_row(to, dq, half, head_size);
    }
  }
};

}  // namespace etc::sparse::cuda
