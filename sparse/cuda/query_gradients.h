// Attention backward, query by query: dq, dC and what the relative terms get. Same launch geometry as the forward: a
// block is a work item and a head, a warp a group of 16 queries; key tiles are copied two deep.
//
//   forward: p = softmax(c·C), out = sum_j dropout(p)_j v_j; so with dp = dropout'(dout·v)
//     dC (+)= c p (dp - dout·out)
//   forward: s = (q·k + q·rel[label] + rel_bias[label]) / sqrt(D); so with ds = dC / sqrt(D)
//     dq += ds k,  dtable[label] += ds     (RelativeKernel takes dtable to dq and the tables)
//   rewind: C = C - s, by the instructions that added it
#pragma once

#include <cstdint>

#include "sparse/cuda/score_terms.h"
#include "sparse/cuda/tile_pipe.h"

namespace etc::sparse::cuda {

// A query without a visible key has a log-sum-exp of -inf; its probabilities are 0 with any other.
ETC_DEVICE float base_two_lse(float lse) {
  return lse == -simt::infinity() ? 0.0f : lse * kLog2E;
}

// What both backward kernels compute of a step. On entry `s` holds its scores (unless the type carries them, and no
// rewind is due) and `dp` dout·v; on return `weights` holds the dropped probabilities and `ds` dC / sqrt(D). kWrites:
// dC is stored and C rewound.
template <bool kWrites, typename Params>
ETC_DEVICE void step_gradients(const Params& p, int type_index, std::int64_t head, std::int64_t column,
                               const float (&s)[4], const float (&dp)[4], const float (&lse)[2],
                               const float (&delta)[2], unsigned kept, float (&weights)[4], float (&ds)[4]) {
  // Both kernels run this text on the same numbers: ds of keys and of queries agree to the last bit.
  const TypeView& type = p.work.types[type_index];
  const ScoreView& scores = p.scores[type_index];
  const bool carried = scores.gradient_mode != ScoreGradientMode::none;
  const unsigned visible = visible_pairs(type, column);
  ETC_UNROLL
  for (int e = 0; e < 4; ++e) {
    const bool seen = (visible >> e & 1u) != 0, keep = (kept >> e & 1u) != 0;
    const std::int64_t place = score_place(type, head, column, e);
    std::int32_t running = 0;
    float logit, c = 1.0f;
    if (carried) {
      // p from C, which includes this layer's s; s itself is needed only to rewind.
      running = simt::load(scores.running, place);
      c = scores.logit_scale;
      logit = running_value(running) * (kLog2E * c);
    } else {
      logit = s[e] * kLog2E;
    }
    // Base 2 throughout; lse is at least every logit, so the power is at most 1.
    const float probability = seen ? simt::exp2(logit - lse[e / 2]) : 0.0f;
    weights[e] = keep ? probability * p.dropout.kept_scale : 0.0f;
    const float kept_dp = keep ? dp[e] * p.dropout.kept_scale : 0.0f;
    // forward: p = softmax(c·C)
    float dc = seen ? probability * (kept_dp - delta[e / 2]) * c : 0.0f;
    if (scores.gradient_mode == ScoreGradientMode::inner) dc += simt::load(scores.gradient, place);
    // Only one of the two kernels may write: the other would read what is half new.
    if (kWrites && carried) {
      simt::store(scores.gradient, place, dc);
      if (scores.rewind) {
        simt::store(scores.running, place, wrapping_subtract(running, simt::nearest(s[e] * kScoreStepsPerUnit)));
      }
    }
    ds[e] = dc * p.sizes.scale;
  }
}

// Shared memory of the kernel. At D = 64 in bf16 with R = 32: 41,472 bytes of key tiles, 20,480 of stage, 10,240 of
// labels and 16,384 of label sums: 88,576, so that a multiprocessor of sm_90 holds two blocks, one of sm_80 one.
template <typename Products>
struct QueryGradientTiles {
  TilePipe<Products> pipe;
  typename Products::Tile q, dout;  // [kBlockQueries, stride]; staged only
  SharedTile<float> stage;          // [kWarpsPerBlock, kTileKeys, kTableStride]
  SharedTile<float> table;          // [kWarpsPerBlock, R, kTableStride]
  SharedTile<float> sums;           // [kWarpsPerBlock, R, 32]: a column per lane

  static ETC_DEVICE QueryGradientTiles take(const AttentionSizes& sizes) {
    SharedArena arena;
    QueryGradientTiles tiles;
    tiles.pipe = TilePipe<Products>::take(arena, sizes);
    if (Products::kStagedQueries) {
      tiles.q = arena.take<typename Products::Value>(kBlockQueries * Products::stride(sizes.head_size));
      tiles.dout = arena.take<typename Products::Value>(kBlockQueries * Products::stride(sizes.head_size));
    }
    tiles.stage = arena.take<float>(kWarpsPerBlock * kTileKeys * kTableStride);
    tiles.table = arena.take<float>(kWarpsPerBlock * sizes.shared_labels * kTableStride);
    tiles.sums = arena.take<float>(kWarpsPerBlock * sizes.shared_labels * simt::kWarp);
    return tiles;
  }
  static constexpr std::int64_t bytes(const AttentionSizes& sizes, int stride) {
    constexpr int kValue = static_cast<int>(sizeof(typename Products::Value));
    const std::int64_t staged = 2 * tile_bytes(std::int64_t{kBlockQueries} * stride, kValue);
    return TilePipe<Products>::bytes(sizes, stride, kValue) + (Products::kStagedQueries ? staged : 0) +
           tile_bytes(std::int64_t{kWarpsPerBlock} * kTileKeys * kTableStride, 4) +
           tile_bytes(std::int64_t{kWarpsPerBlock} * sizes.shared_labels * kTableStride, 4) +
           tile_bytes(std::int64_t{kWarpsPerBlock} * sizes.shared_labels * simt::kWarp, 4);
  }
};

// One block: 64 queries of one example and head against the key tiles they see; a warp takes 16 of them. What a thread
// holds over the whole loop, for its rows lane/4 and lane/4 + 8 of the warp's group:
//   query, dout  the operands of q·k and dout·v
//   lse, delta   of its two rows
//   dq           kTiles accumulators of 16x8
// Leaves dq without the share of the relative vectors, dC, C rewound, and the label sums.
template <typename Products, typename Terms>
struct QueryGradientKernel {
  using Params = BackwardParams<typename Products::Element>;
  static constexpr int kThreads = kBlockThreads;
  static constexpr int kMinBlocks = 1;
  static constexpr std::int64_t kMaxShared = kMaxTileBytes;
  static const char* name() { return "attention backward, queries"; }

  static ETC_DEVICE void run(const Params& p) {
    // Block x: an item; block y: a head; warp w: the item's group w.
    const QueryItem item = simt::load(p.work.items, simt::block_x());
    const std::int64_t head = simt::block_y();
    const int warp = simt::warp_index(), lane = simt::lane_index(), thread = simt::thread_index();
    const int head_size = p.sizes.head_size;
    const bool working = warp < item.groups;
    const std::int64_t group = item.first_group + warp;
    auto shared = QueryGradientTiles<Products>::take(p.sizes);
    const auto stage = shared.stage.part(warp * kTileKeys * kTableStride, kTileKeys * kTableStride);

    if (Products::kStagedQueries) {
      Products::copy_rows(shared.q, p.q, head, item.query_row, 0, item.queries, kBlockQueries, head_size, thread,
                          kThreads);
      Products::copy_rows(shared.dout, p.dout, head, item.query_row, 0, item.queries, kBlockQueries, head_size, thread,
                          kThreads);
    }
    shared.pipe.begin(p, item, head);
    Terms terms;
    const auto sums = Terms::Sums::of(p, item, head, shared.sums);
    if (working) {
      terms.load(p.sizes, p.table, shared.table, head, p.work.types[0].run_offsets.size - 1, group);
      sums.clear();
    }
    // Row of the warp's first query.
    const std::int64_t first_row = item.query_row + kGroup * warp;
    typename Products::Query query, dout;
    Products::load_query(query, shared.q, p.q, head, first_row, kGroup * warp, item.queries - kGroup * warp, head_size);
    Products::load_query(dout, shared.dout, p.dout, head, first_row, kGroup * warp, item.queries - kGroup * warp,
                         head_size);
    // Of the lane's two rows.
    float lse[2] = {0.0f, 0.0f}, delta[2] = {0.0f, 0.0f};
    ETC_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int row = lane / 4 + 8 * half;
      if (kGroup * warp + row >= item.queries) continue;
      lse[half] = base_two_lse(simt::load(p.lse, head * p.sizes.queries + first_row + row));
      delta[half] = simt::load(p.delta, head * p.sizes.queries + first_row + row);
    }
    std::uint64_t stream = 0;
    if (p.dropout.keys.size > 0) stream = simt::load(p.dropout.keys, item.example);

    // dq of the group, spread over the warp as accumulators are.
    float dq[Products::kTiles][4];  // [16 queries, 8 kTiles components] over the warp
    ETC_UNROLL
    for (int t = 0; t < Products::kTiles; ++t) {
      ETC_UNROLL
      for (int e = 0; e < 4; ++e) dq[t][e] = 0.0f;
    }

    // Every warp goes through all tiles of the block: copies and barriers are the block's.
    for (int n = item.tile_begin; n < item.tile_end; ++n) {
      shared.pipe.arrive(p, item, head, n);
      if (working) {
        const KeyTile tile = simt::load(p.work.tiles, n);
        const TypeView& type = p.work.types[tile.type];
        const Cursor cursor = simt::load(p.work.cursors, n * kWarpsPerBlock + warp);
        const Chunk chunk = chunk_of(type, cursor, group, tile.first_key);
        // With scores carried and nothing to rewind no s is computed.
        const bool needs_scores =
            p.scores[tile.type].gradient_mode == ScoreGradientMode::none || p.scores[tile.type].rewind;
        // Step by step through the chunk: q·k, dout·v, and from both ds, which stays in registers.
        float ds[kTileSteps][4] = {};  // [16 queries, 64 keys] over the warp
        ETC_UNROLL
        for (int s = 0; s < kTileSteps; ++s) {
          if (s >= chunk.count) break;
          float score[4] = {0.0f, 0.0f, 0.0f, 0.0f}, dp[4] = {0.0f, 0.0f, 0.0f, 0.0f}, weights[4];
          if (needs_scores) {
            float term[4];
            Products::scores(query, shared.pipe.keys(), chunk.row[s], head_size, score);
            terms.of_step(type, chunk.column[s], term);
            ETC_UNROLL
            for (int e = 0; e < 4; ++e) score[e] = simt::fma(score[e], p.sizes.scale, term[e]);
          }
          Products::scores(dout, shared.pipe.values(), chunk.row[s], head_size, dp);
          // Bit e of accumulator e: without dropout all four.
          unsigned kept = 15;
          if (p.dropout.keys.size > 0) {
            const int key = tile.first_key + chunk.row[s] + (tile.type == 0 ? 0 : item.keys[0]);
            kept = kept_pairs(stream, p.dropout.threshold, head, item.first_query + kGroup * warp, key);
          }
          step_gradients<true>(p, tile.type, head, chunk.column[s], score, dp, lse, delta, kept, weights, ds[s]);
        }
        // The stage turns accumulators into columns by query, for products in fp32 and for label sums.
        const bool summed = sums.takes(type);
        if (Products::kStagedWeights || summed) {
          // [kTileKeys, kTableStride] of the warp: a column of ds per query
          stage_chunk(stage, ds, chunk);
          simt::sync_warp();
        }
        // dq += ds · keys of the tile
        Products::weighted_sum(ds, chunk, shared.pipe.keys(), head_size, stage, dq);
        if (summed) sums.add_chunk(type, chunk, stage);
      }
      shared.pipe.leave(p, item, head, n);
    }
    simt::copy_async_wait<0>();
    simt::sync_block();
    if (!working) return;
    finish(p, item, head, warp, dq);
    sums.flush();
  }

  static ETC_DEVICE void finish(const Params& p, const QueryItem& item, std::int64_t head, int warp,
                                const float (&dq)[Products::kTiles][4]) {
    const int lane = simt::lane_index(), head_size = p.sizes.head_size, labels = p.sizes.labels;
    // Whole items write dq, parts of split ones their slot.
    const bool whole = item.slot < 0;
    const std::int64_t slot =
        (static_cast<std::int64_t>(item.slot) * p.sizes.heads + head) * kBlockQueries * (head_size + labels);
    ETC_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int query = kGroup * warp + lane / 4 + 8 * half;
      if (query >= item.queries) continue;
      ETC_UNROLL
      for (int t = 0; t < Products::kTiles; ++t) {
        ETC_UNROLL
        for (int e = 0; e < 2; ++e) {
          const int d = 8 * t + lane % 4 * 2 + e;
          if (d >= head_size) continue;
          const float value = dq[t][2 * half + e];
          if (whole) {
            simt::store(p.dq.values, (item.query_row + query) * p.dq.row_stride + head * head_size + d, value);
          } else {
            simt::store(p.query_slots, slot + query * (head_size + labels) + d, value);
          }
        }
      }
    }
  }
};

}  // namespace etc::sparse::cuda
