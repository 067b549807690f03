// Attention backward by keys: dk and dv. Block x is a work item: 64 keys of one type and the groups of queries that
// see any of them, processed four groups at a time; block y is a head.
//
//   1. a warp per group: probabilities and ds of its pairs with these keys, to shared memory  [64 queries, 64 keys]
//   2. a warp per 16 keys: dk += dsᵀ q, dv += dropout(p)ᵀ dout over the four groups
// A block owns its keys, so no two blocks add to the same number. Keys that very many groups see are split by groups,
// and SumKeysKernel adds the parts in order. Runs before QueryGradientKernel, which updates dC and rewinds C.
#pragma once

#include <cstdint>

#include "sparse/cuda/pairwise_terms.h"
#include "sparse/cuda/step_gradients.h"
#include "sparse/cuda/tile_pipe.h"

namespace etc::sparse::cuda {

// Steps do not begin at multiples of 8: the first may begin before the tile, the last may end after it.
inline constexpr int kKeyRows = kTileKeys + 2 * kRunStep;

// Shared memory of the kernel. At D = 64 in bf16 with R = 32: 23,040 bytes of keys and values, 18,432 of queries and
// their gradients, 18,432 of pairs, 10,240 of labels: 70,144.
template <typename Products>
struct KeyGradientTiles {
  typename Products::Tile k, v;         // [kKeyRows, stride]
  typename Products::Tile q, dout;      // [kBlockQueries, stride]
  typename Products::Tile weights, ds;  // [kBlockQueries, kPairStride]
  SharedTile<float> table;              // [kWarpsPerBlock, R, kTableStride]
  SharedTile<std::uint16_t> labels;     // [kBlockQueries, kTileKeys]; with pairwise terms only

  template <typename Arena>
  static constexpr KeyGradientTiles take(Arena& arena, const AttentionSizes& sizes) {
    using Value = typename Products::Value;
    KeyGradientTiles tiles;
    const int stride = Products::stride(sizes.head_size);
    tiles.k = arena.template take<Value>(kKeyRows * stride);
    tiles.v = arena.template take<Value>(kKeyRows * stride);
    tiles.q = arena.template take<Value>(kBlockQueries * stride);
    tiles.dout = arena.template take<Value>(kBlockQueries * stride);
    tiles.weights = arena.template take<Value>(kBlockQueries * Products::kPairStride);
    tiles.ds = arena.template take<Value>(kBlockQueries * Products::kPairStride);
    tiles.table = arena.template take<float>(kWarpsPerBlock * sizes.shared_labels * kTableStride);
    tiles.labels = arena.template take<std::uint16_t>(sizes.pairwise ? kBlockQueries * kTileKeys : 0);
    return tiles;
  }
};

// One block: 64 keys of one key set and head. It processes the groups that see them four at a time, one warp each; then
// every warp takes 16 of the keys and adds the contributions of the four groups. The two phases exchange data through
// the pair tiles.
//   weights, ds  [64 queries, 64 keys]   written by the queries' warps, read transposed by the keys'
//   dk, dv       kTiles accumulators of 16x8 per thread, over the whole loop
// A step of 8 keys may begin up to 7 keys before the tile, so keys and values come with 8 rows to either side.
template <typename Products, typename Terms>
struct KeyGradientKernel : simt::BlockOf<kBlockThreads, kMaxTileBytes> {
  using Params = BackwardParams<typename Products::Element>;
  static const char* name() { return "attention backward, keys"; }

  static ETC_DEVICE std::int64_t head_of_block(const Params& p) {
    return Terms::kPairwise ? head_of(p.work.own_heads.key_items, simt::block_x()) : simt::block_y();
  }

  // A warp's group of queries, one of those that see any of the block's keys.
  struct Group {
    KeyEntry entry;              // the group, and where in its runs the block's keys begin
    int first = 0, queries = 0;  // first query within the example, and number of queries from there on
    std::int64_t row = 0;        // of the first query
    Terms terms;
    typename Products::Query query, dout;
    RowStatistics rows;
    std::uint64_t stream = 0;  // of dropout
  };

  // Computes a step's pairs into the warp's rows of the pair tiles.   offset: of the step within the tile, at least -7
  static ETC_DEVICE void add_step(const Params& p, const KeyItem& item, const KeyGradientTiles<Products>& shared,
                                  const Group& group, int offset, std::int64_t column) {
    const int warp = simt::warp_index(), head_size = p.sizes.head_size;
    StepPairs step{item.type, head_of_block(p), column};
    float score[4] = {0.0f, 0.0f, 0.0f, 0.0f}, dp[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    // For a type that carries scores, p is computed from C.
    if (p.scores[item.type].gradient_mode == ScoreGradientMode::none) {
      Products::scores(group.query, shared.k, offset + kRunStep, head_size, score);
      if constexpr (Terms::kPairwise) Terms::join_scores(p, place_of_step(p, item, group, offset, column), score);
      add_terms(group.terms, p.work.types[item.type], column, p.sizes.scale, score);
    }
    Products::scores(group.dout, shared.v, offset + kRunStep, head_size, dp);
    if constexpr (Terms::kPairwise) Terms::join_gradients(p, place_of_step(p, item, group, offset, column), dp);
    if (p.dropout.keys.size > 0) {
      const int number = item.first_key + offset + (item.type == 0 ? 0 : item.example_keys[0]);
      step.kept = kept_pairs(group.stream, p.dropout.threshold, step.head, group.first, number);
    }
    // Reads C and dC as written by the layer above; QueryGradientKernel updates them afterwards.
    const StepGradients gradients = step_gradients<ScoreUse::reads>(p, step, group.rows, score, dp);
    ETC_UNROLL
    for (int e = 0; e < 4; ++e) {
      const int own = offset + key_of(e);
      // A step may begin before the tile or end after it; those keys belong to the neighbouring tile.
      if (own < 0 || own >= kTileKeys) continue;
      const int place = (kGroup * warp + query_of(e)) * Products::kPairStride + own;
      shared.weights.store(place, Products::value(gradients.weights[e]));
      shared.ds.store(place, Products::value(gradients.ds[e]));
      if constexpr (Terms::kPairwise) {
        const StepPlace at = place_of_step(p, item, group, offset, column);
        store_label(p, at, e, (kGroup * warp + query_of(e)) * kTileKeys + own, shared);
      }
    }
  }

  // The place of a step whose first key is at `offset` within the tile.
  static ETC_DEVICE StepPlace place_of_step(const Params& p, const KeyItem& item, const Group& group, int offset,
                                            std::int64_t column) {
    const int first_key = item.first_key + offset;
    return {
        item.type, head_of_block(p),      column,
        group.row, item.key_row + offset, distance_of(p.work.types[item.type], item.example, group.first, first_key)};
  }

  // Stores the label of pair e of a step for the warp that owns the key.
  static ETC_DEVICE void store_label(const Params& p, const StepPlace& at, int e, int place,
                                     const KeyGradientTiles<Products>& shared) {
    const TypeView& type = p.work.types[at.type];
    if (!type.labelled()) return;
    shared.labels.store(place, static_cast<std::uint16_t>(label_of_pair(type, at, query_of(e), key_of(e))));
  }

  // Computes the pairs of one warp's group with the block's keys: rows [16 warp, 16 warp + 16) of the pair tiles.
  static ETC_DEVICE void pairs_of_group(const Params& p, const KeyItem& item, const KeyGradientTiles<Products>& shared,
                                        Group& group) {
    const TypeView& type = p.work.types[item.type];
    const std::int64_t head = head_of_block(p);
    const int first_row = kGroup * simt::warp_index();
    Products::load_query(group.query, shared.q, first_row, rows_of_head(p.q, head, group.row, group.queries));
    Products::load_query(group.dout, shared.dout, first_row, rows_of_head(p.dout, head, group.row, group.queries));
    group.rows = load_row_statistics(p, head, group.row, group.queries);
    if (p.dropout.keys.size > 0) group.stream = simt::load(p.dropout.keys, item.example);

    const std::int64_t runs_end = simt::load(type.run_offsets, static_cast<std::int64_t>(group.entry.group) + 1);
    // Only the first run begins in the middle.
    int key = group.entry.cursor.key;
    ETC_KEEP_LOOP
    for (std::int64_t at = group.entry.cursor.run; at < runs_end; ++at, key = 0) {
      const TileRun run = simt::load(type.runs, at);
      if (run.first_key + key >= item.first_key + item.keys) break;
      ETC_KEEP_LOOP
      for (; key < run.keys; key += kRunStep) {
        const int offset = run.first_key + key - item.first_key;
        if (offset >= item.keys) break;
        add_step(p, item, shared, group, offset, run.column + key);
        simt::sync_warp();  // lanes reconverge for the next step's products
      }
    }
  }

  // Starts copying the block's keys and values, from kRunStep before the first key.
  static ETC_DEVICE void copy_keys(const Params& p, const KeyItem& item, const KeyGradientTiles<Products>& shared) {
    const std::int64_t head = head_of_block(p), first_row = item.key_row - kRunStep;
    // The example's first tile has no keys before it.
    const int first_valid = item.first_key < kRunStep ? kRunStep - item.first_key : 0;
    const int valid = (item.type == 0 ? item.example_keys[0] : item.example_keys[1]) - item.first_key + kRunStep;
    const Team block{simt::thread_index(), kBlockThreads};
    Products::copy_rows(shared.k, rows_of_head(p.k[item.type], head, first_row, valid, first_valid), kKeyRows,
                        p.sizes.head_size, block);
    Products::copy_rows(shared.v, rows_of_head(p.v[item.type], head, first_row, valid, first_valid), kKeyRows,
                        p.sizes.head_size, block);
    simt::copy_async_commit();
  }

  // Loads the warp's group (none if not `working`): copies its queries and their gradients into the block's tiles and
  // zeroes the pairs of all its rows. When this returns, all of it is visible to the whole block.
  static ETC_DEVICE Group begin_group(const Params& p, const KeyItem& item, const KeyGradientTiles<Products>& shared,
                                      int entry, bool working) {
    const std::int64_t head = head_of_block(p);
    const int warp = simt::warp_index(), stride = Products::stride(p.sizes.head_size);
    const auto q = shared.q.part(kGroup * warp * stride, kGroup * stride);
    const auto dout = shared.dout.part(kGroup * warp * stride, kGroup * stride);
    Group group;
    if (working) {
      group.entry = simt::load(p.work.key_entries, entry);
      group.first = (group.entry.group - item.first_group) * kGroup;
      group.row = item.query_row + group.first;
      group.queries = item.queries - group.first;
      group.terms.load(p, shared.table, head, group.entry.group);
    }
    // Every warp copies its own group's rows; the barrier below makes all four visible to all.
    const Team own{simt::lane_index(), simt::kWarp};
    Products::copy_rows(q, rows_of_head(p.q, head, group.row, group.queries), kGroup, p.sizes.head_size, own);
    Products::copy_rows(dout, rows_of_head(p.dout, head, group.row, group.queries), kGroup, p.sizes.head_size, own);
    simt::copy_async_commit();
    // Pairs that are not computed (between runs, and of warps without a group) must have weight zero.
    for (int i = own.thread; i < kGroup * Products::kPairStride; i += own.threads) {
      shared.weights.store(kGroup * warp * Products::kPairStride + i, Products::value(0.0f));
      shared.ds.store(kGroup * warp * Products::kPairStride + i, Products::value(0.0f));
    }
    simt::copy_async_wait<0>();
    simt::sync_block();
    return group;
  }

  static ETC_DEVICE void run(const Params& p) {
    // Block x: 64 keys of one set; block y: a head.
    const KeyItem item = simt::load(p.work.key_items, simt::block_x());
    const int warp = simt::warp_index(), head_size = p.sizes.head_size;
    SharedArena arena;
    const auto shared = KeyGradientTiles<Products>::take(arena, p.sizes);
    copy_keys(p, item, shared);

    // Gradients of the warp's 16 keys, over all groups of the item.
    float dk[Products::kTiles][4], dv[Products::kTiles][4];  // each [16 keys, 8 kTiles components] over the warp
    clear(dk);
    clear(dv);
    // Four groups at a time; the last time there may be fewer, and the other warps' pairs are zeros.
    for (int n = item.entry_begin; n < item.entry_end; n += kWarpsPerBlock) {
      const bool working = n + warp < item.entry_end;
      Group group = begin_group(p, item, shared, n + warp, working);
      if (working) pairs_of_group(p, item, shared, group);
      simt::sync_block();
      // forward: out += p v, s += q·k / sqrt(D); so dv += pᵀ dout, dk += dsᵀ q
      // The warp's 16 keys with all 64 queries of the four groups.
      Products::transposed_sum(shared.weights, Products::kPairStride, kGroup * warp, shared.dout, head_size, dv);
      if constexpr (Terms::kPairwise) {
        add_keys(p, item, shared, dk);
      } else {
        Products::transposed_sum(shared.ds, Products::kPairStride, kGroup * warp, shared.q, head_size, dk);
      }
      simt::sync_block();
    }
    simt::copy_async_wait<0>();
    finish(p, item, dk, dv);
  }

  // With pairwise terms: adds to dk of the warp's keys, over all queries of the four groups.
  static ETC_DEVICE void add_keys(const Params& p, const KeyItem& item, const KeyGradientTiles<Products>& shared,
                                  float (&dk)[Products::kTiles][4]) {
    if (p.work.types[item.type].labelled()) {
      return Terms::template add_key_gradients<Products>(p, head_of_block(p), shared.ds, shared.labels, shared.q, dk);
    }
    Products::transposed_sum(shared.ds, Products::kPairStride, kGroup * simt::warp_index(), shared.q, p.sizes.head_size,
                             dk);
  }

  // Keys that very many groups see are split by groups; SumKeysKernel adds the parts.
  static ETC_DEVICE void finish(const Params& p, const KeyItem& item, const float (&dk)[Products::kTiles][4],
                                const float (&dv)[Products::kTiles][4]) {
    const std::int64_t head = head_of_block(p);
    const int head_size = p.sizes.head_size;
    const bool whole = item.slot < 0;
    const std::int64_t slots = (static_cast<std::int64_t>(item.slot) * p.sizes.heads + head) * kTileKeys;
    // Selected, not indexed: indexing would move the outputs to local memory.
    const Output& dk_out = item.type == 0 ? p.dk[0] : p.dk[1];
    const Output& dv_out = item.type == 0 ? p.dv[0] : p.dv[1];
    ETC_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int key = kGroup * simt::warp_index() + simt::lane_index() / 4 + 8 * half;
      if (key >= item.keys) continue;
      const std::int64_t slot = (slots + key) * 2 * head_size, row = item.key_row + key;
      store_row(whole ? place_of(dk_out, row, head, head_size) : scratch_place(p.key_slots, slot), dk, half, head_size);
      store_row(whole ? place_of(dv_out, row, head, head_size) : scratch_place(p.key_slots, slot + head_size), dv, half,
                head_size);
    }
  }
};

}  // namespace etc::sparse::cuda
