// Attention backward, key by key: dk and dv. Block x is a work item: 64 keys of one type and the groups of queries that
// see any of them, four at a time; block y is a head.
//
//   1. a warp a group: probabilities and ds of its pairs with these keys, to shared memory  [64 queries, 64 keys]
//   2. a warp 16 keys: dk += dsᵀ q, dv += dropout(p)ᵀ dout over the four groups
// A block owns its keys, so nothing is added by two blocks; where a key is seen by very many groups they are split, and
// SumKeysKernel adds the parts in order. Runs before QueryGradientKernel, which brings dC up to date and C back.
#pragma once

#include <cstdint>

#include "sparse/cuda/query_gradients.h"

namespace etc::sparse::cuda {

// Steps do not begin at multiples of 8: the first may begin before the tile, the last end behind it.
inline constexpr int kKeyRows = kTileKeys + 2 * kRunStep;

// Shared memory of the kernel. At D = 64 in bf16 with R = 32: 23,040 bytes of keys and values, 18,432 of queries and
// their gradients, 18,432 of pairs, 10,240 of labels: 70,144.
template <typename Products>
struct KeyGradientTiles {
  typename Products::Tile k, v;         // [kKeyRows, stride]
  typename Products::Tile q, dout;      // [kBlockQueries, stride]
  typename Products::Tile weights, ds;  // [kBlockQueries, kPairStride]
  SharedTile<float> table;              // [kWarpsPerBlock, R, kTableStride]

  static ETC_DEVICE KeyGradientTiles take(const AttentionSizes& sizes) {
    using Value = typename Products::Value;
    SharedArena arena;
    KeyGradientTiles tiles;
    const int stride = Products::stride(sizes.head_size);
    tiles.k = arena.take<Value>(kKeyRows * stride);
    tiles.v = arena.take<Value>(kKeyRows * stride);
    tiles.q = arena.take<Value>(kBlockQueries * stride);
    tiles.dout = arena.take<Value>(kBlockQueries * stride);
    tiles.weights = arena.take<Value>(kBlockQueries * Products::kPairStride);
    tiles.ds = arena.take<Value>(kBlockQueries * Products::kPairStride);
    tiles.table = arena.take<float>(kWarpsPerBlock * sizes.shared_labels * kTableStride);
    return tiles;
  }
  static constexpr std::int64_t bytes(const AttentionSizes& sizes, int stride) {
    constexpr int kValue = static_cast<int>(sizeof(typename Products::Value));
    return 2 * tile_bytes(std::int64_t{kKeyRows} * stride, kValue) +
           2 * tile_bytes(std::int64_t{kBlockQueries} * stride, kValue) +
           2 * tile_bytes(std::int64_t{kBlockQueries} * Products::kPairStride, kValue) +
           tile_bytes(std::int64_t{kWarpsPerBlock} * sizes.shared_labels * kTableStride, 4);
  }
};

// One block: 64 keys of one key set and head. It goes through the groups that see them four at a time, a warp each;
// then every warp turns to 16 of the keys and adds up what the four groups gave: the pair tiles are how the two halves
// meet.
//   weights, ds  [64 queries, 64 keys]   written by the queries' warps, read transposed by the keys'
//   dk, dv       kTiles accumulators of 16x8 per thread, over the whole loop
// A step of 8 keys may begin up to 7 keys before the tile, so keys and values come with 8 rows to either side.
template <typename Products, typename Terms>
struct KeyGradientKernel {
  using Params = BackwardParams<typename Products::Element>;
  static constexpr int kThreads = kBlockThreads;
  static constexpr int kMinBlocks = 1;
  static constexpr std::int64_t kMaxShared = kMaxTileBytes;
  static const char* name() { return "attention backward, keys"; }

  // One warp's group: its pairs with the block's keys, into rows [16 warp, 16 warp + 16) of the pair tiles.
  static ETC_DEVICE void pairs_of_group(const Params& p, const KeyItem& item, std::int64_t head, int entry_index,
                                        const KeyGradientTiles<Products>& shared, const Terms& terms) {
    const int warp = simt::warp_index(), lane = simt::lane_index(), head_size = p.sizes.head_size;
    const TypeView& type = p.work.types[item.type];
    const ScoreView& scores = p.scores[item.type];
    const bool carried = scores.gradient_mode != ScoreGradientMode::none;
    // One group that sees any of the block's keys, and where in its runs that begins.
    const KeyEntry entry = simt::load(p.work.key_entries, entry_index);
    const int first_query = (entry.group - item.first_group) * kGroup;
    const std::int64_t row = item.query_row + first_query;
    const int queries = item.queries - first_query;
    typename Products::Query query, dout;
    Products::load_query(query, shared.q, p.q, head, row, kGroup * warp, queries, head_size);
    Products::load_query(dout, shared.dout, p.dout, head, row, kGroup * warp, queries, head_size);
    float lse[2] = {0.0f, 0.0f}, delta[2] = {0.0f, 0.0f};
    ETC_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int own = lane / 4 + 8 * half;
      // Missing queries: p is 0 with any numbers.
      if (own >= queries) continue;
      lse[half] = base_two_lse(simt::load(p.lse, head * p.sizes.queries + row + own));
      delta[half] = simt::load(p.delta, head * p.sizes.queries + row + own);
    }
    std::uint64_t stream = 0;
    if (p.dropout.keys.size > 0) stream = simt::load(p.dropout.keys, item.example);

    const std::int64_t runs_end = simt::load(type.run_offsets, static_cast<std::int64_t>(entry.group) + 1);
    // Only the first run begins in the middle.
    int key = entry.cursor.key;
    ETC_KEEP_LOOP
    for (std::int64_t at = entry.cursor.run; at < runs_end; ++at, key = 0) {
      const TileRun run = simt::load(type.runs, at);
      if (run.first_key + key >= item.first_key + item.keys) break;
      ETC_KEEP_LOOP
      for (; key < run.keys; key += kRunStep) {
        const int offset = run.first_key + key - item.first_key;  // of the step, within the tile; -7 at least
        if (offset >= item.keys) break;
        const std::int64_t column = run.column + key;
        float score[4] = {0.0f, 0.0f, 0.0f, 0.0f}, dp[4] = {0.0f, 0.0f, 0.0f, 0.0f}, weights[4], ds[4];
        // Of a type that carries scores p comes from C.
        if (!carried) {
          float term[4];
          Products::scores(query, shared.k, offset + kRunStep, head_size, score);
          terms.of_step(type, column, term);
          ETC_UNROLL
          for (int e = 0; e < 4; ++e) score[e] = simt::fma(score[e], p.sizes.scale, term[e]);
        }
        Products::scores(dout, shared.v, offset + kRunStep, head_size, dp);
        unsigned kept = 15;
        if (p.dropout.keys.size > 0) {
          const int number = item.first_key + offset + (item.type == 0 ? 0 : item.example_keys[0]);
          kept = kept_pairs(stream, p.dropout.threshold, head, first_query, number);
        }
        // Reads C and dC as the layer above left them; QueryGradientKernel, after this, brings them up to date.
        step_gradients<false>(p, item.type, head, column, score, dp, lse, delta, kept, weights, ds);
        ETC_UNROLL
        for (int e = 0; e < 4; ++e) {
          const int own = offset + key_of(e);
          // A step may begin before the tile or end behind it: those keys are the neighbour's.
          if (own < 0 || own >= kTileKeys) continue;
          const int place = (kGroup * warp + query_of(e)) * Products::kPairStride + own;
          shared.weights.store(place, Products::value(weights[e]));
          shared.ds.store(place, Products::value(ds[e]));
        }
        simt::sync_warp();  // lanes come back together for the next step's products
      }
    }
  }

  static ETC_DEVICE void run(const Params& p) {
    // Block x: 64 keys of one set; block y: a head.
    const KeyItem item = simt::load(p.work.key_items, simt::block_x());
    const std::int64_t head = simt::block_y();
    const int warp = simt::warp_index(), lane = simt::lane_index(), thread = simt::thread_index();
    const int head_size = p.sizes.head_size, stride = Products::stride(head_size);
    const auto shared = KeyGradientTiles<Products>::take(p.sizes);

    // Keys and values, from kRunStep before the first key.
    // The example's first tile has nothing before it.
    const int first_valid = item.first_key < kRunStep ? kRunStep - item.first_key : 0;
    const int valid = (item.type == 0 ? item.example_keys[0] : item.example_keys[1]) - item.first_key + kRunStep;
    Products::copy_rows(shared.k, p.k[item.type], head, item.key_row - kRunStep, first_valid, valid, kKeyRows,
                        head_size, thread, kThreads);
    Products::copy_rows(shared.v, p.v[item.type], head, item.key_row - kRunStep, first_valid, valid, kKeyRows,
                        head_size, thread, kThreads);
    simt::copy_async_commit();

    // Of the warp's 16 keys, over all groups of the item.
    float dk[Products::kTiles][4], dv[Products::kTiles][4];  // each [16 keys, 8 kTiles components] over the warp
    ETC_UNROLL
    for (int t = 0; t < Products::kTiles; ++t) {
      ETC_UNROLL
      for (int e = 0; e < 4; ++e) dk[t][e] = dv[t][e] = 0.0f;
    }
    // Four groups at a time; the last time fewer, the other warps' pairs are zeros.
    for (int n = item.entry_begin; n < item.entry_end; n += kWarpsPerBlock) {
      const bool working = n + warp < item.entry_end;
      // The warp's queries; without a group they are zeros, and so are its pairs.
      const auto q = shared.q.part(kGroup * warp * stride, kGroup * stride);
      const auto dout = shared.dout.part(kGroup * warp * stride, kGroup * stride);
      std::int64_t row = 0;
      int queries = 0;
      Terms terms;
      if (working) {
        const std::int64_t group = simt::load(p.work.key_entries, n + warp).group;
        const int first = static_cast<int>(group - item.first_group) * kGroup;
        row = item.query_row + first;
        queries = item.queries - first;
        terms.load(p.sizes, p.table, shared.table, head, p.work.types[0].run_offsets.size - 1, group);
      }
      // Every warp copies its own group's rows; the barrier below makes all four visible to all.
      Products::copy_rows(q, p.q, head, row, 0, queries, kGroup, head_size, lane, simt::kWarp);
      Products::copy_rows(dout, p.dout, head, row, 0, queries, kGroup, head_size, lane, simt::kWarp);
      simt::copy_async_commit();
      // Pairs nobody computes must weigh nothing: stretches between runs, and warps without a group.
      for (int i = lane; i < kGroup * Products::kPairStride; i += simt::kWarp) {
        shared.weights.store(kGroup * warp * Products::kPairStride + i, Products::value(0.0f));
        shared.ds.store(kGroup * warp * Products::kPairStride + i, Products::value(0.0f));
      }
      simt::copy_async_wait<0>();
      simt::sync_block();
      if (working) pairs_of_group(p, item, head, n + warp, shared, terms);
      simt::sync_block();
      // forward: out += p v, s += q·k / sqrt(D); so dv += pᵀ dout, dk += dsᵀ q
      // A warp's 16 keys against all 64 queries of the four groups.
      Products::transposed_sum(shared.weights, Products::kPairStride, kGroup * warp, shared.dout, head_size, dv);
      Products::transposed_sum(shared.ds, Products::kPairStride, kGroup * warp, shared.q, head_size, dk);
      simt::sync_block();
    }
    simt::copy_async_wait<0>();

    // Keys that very many groups see are split by groups; SumKeysKernel adds the parts.
    const bool whole = item.slot < 0;
    // Chosen, not indexed: an index would put the outputs into memory.
    const Output& dk_out = item.type == 0 ? p.dk[0] : p.dk[1];
    const Output& dv_out = item.type == 0 ? p.dv[0] : p.dv[1];
    ETC_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int key = kGroup * warp + lane / 4 + 8 * half;
      if (key >= item.keys) continue;
      const std::int64_t slot =
          ((static_cast<std::int64_t>(item.slot) * p.sizes.heads + head) * kTileKeys + key) * 2 * head_size;
      const std::int64_t out_row = item.key_row + key;
      ETC_UNROLL
      for (int t = 0; t < Products::kTiles; ++t) {
        ETC_UNROLL
        for (int e = 0; e < 2; ++e) {
          const int d = 8 * t + lane % 4 * 2 + e;
          if (d >= head_size) continue;
          if (whole) {
            simt::store(dk_out.values, out_row * dk_out.row_stride + head * head_size + d, dk[t][2 * half + e]);
            simt::store(dv_out.values, out_row * dv_out.row_stride + head * head_size + d, dv[t][2 * half + e]);
          } else {
            simt::store(p.key_slots, slot + d, dk[t][2 * half + e]);
            simt::store(p.key_slots, slot + head_size + d, dv[t][2 * half + e]);
          }
        }
      }
    }
  }
};

}  // namespace etc::sparse::cuda
