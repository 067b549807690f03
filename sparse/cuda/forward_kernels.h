// Attention forward. Launch geometry: block x is a work item (up to 4 groups of 16 queries of one example and the key
// tiles they see), block y a head, a warp a group. Key tiles are double-buffered: while one is used, the next is being
// copied.
//
//   1. per key tile: scores of the group's steps, relative terms, running scores, mask
//   2. running maximum and sum (online softmax, in powers of two), outputs rescaled
//   3. dropout, weighted sum of values
// An item that covers all keys of its queries writes outputs; other items write (output, maximum, sum) to a slot for
// CombineKernel.
#pragma once

#include <cstdint>

#include "sparse/cuda/pairwise_terms.h"
#include "sparse/cuda/tile_pipe.h"

namespace etc::sparse::cuda {

// Maximum (or sum) over the four lanes that share a row.
ETC_DEVICE float row_max(float x) {
  // Lanes 4i … 4i+3 share a row: two shuffles reach all of them.
  float other = simt::shuffle_xor(x, 1);
  x = x > other ? x : other;
  other = simt::shuffle_xor(x, 2);
  return x > other ? x : other;
}
ETC_DEVICE float row_sum(float x) {
  x += simt::shuffle_xor(x, 1);
  return x + simt::shuffle_xor(x, 2);
}

// Online softmax of a group: a lane's part of its rows lane/4 and lane/4 + 8, relative to the largest logit so far.
template <int kTiles>
struct OnlineSoftmax {
  float out[kTiles][4];  // [16 queries, 8 kTiles components] over the warp
  float max[2], sum[2];  // base 2

  ETC_DEVICE void begin() {
    clear(out);
    max[0] = max[1] = kHidden;
    sum[0] = sum[1] = 0.0f;
  }
  // Rescales everything to a new maximum; `largest` is this lane's share of it. While a row has seen no key, its
  // maximum is kHidden, and its hidden pairs must not get weights of 1.
  ETC_DEVICE void follow(const float (&largest)[2]) {
    ETC_UNROLL
    for (int half = 0; half < 2; ++half) {
      // Four lanes share a row and must agree on its maximum.
      const float now = row_max(largest[half]);
      const float shrink = max[half] == kHidden ? 0.0f : simt::exp2(max[half] - now);
      max[half] = now;
      sum[half] *= shrink;
      ETC_UNROLL
      for (int t = 0; t < kTiles; ++t) {
        out[t][2 * half] *= shrink;
        out[t][2 * half + 1] *= shrink;
      }
    }
  }
};

// Shared memory of the forward kernel. At D = 64 in bf16 with R = 32 it takes 41,472 bytes of key tiles and 10,240 of
// labels, so that four blocks fit into the 227 KB of an sm_90 multiprocessor and three into the 163 KB of sm_80.
template <typename Products>
struct ForwardTiles {
  TilePipe<Products> pipe;
  typename Products::Tile q;  // [kBlockQueries, stride]; staged only
  SharedTile<float> stage;    // [kWarpsPerBlock, kTileKeys, kTableStride]; staged only
  SharedTile<float> table;    // [kWarpsPerBlock, R, kTableStride]

  template <typename Arena>
  static constexpr ForwardTiles take(Arena& arena, const AttentionSizes& sizes) {
    ForwardTiles tiles;
    tiles.pipe = TilePipe<Products>::take(arena, sizes);
    if (Products::kStagedQueries) {
      tiles.q = arena.template take<typename Products::Value>(kBlockQueries * Products::stride(sizes.head_size));
    }
    if (Products::kStagedWeights) {
      tiles.stage = arena.template take<float>(kWarpsPerBlock * kTileKeys * kTableStride);
    }
    tiles.table = arena.template take<float>(kWarpsPerBlock * sizes.shared_labels * kTableStride);
    return tiles;
  }
};

// One block: 64 queries of one example and head, and the key tiles they see; a warp processes 16 of the queries. What a
// thread keeps over the whole loop, for its rows lane/4 and lane/4 + 8 of the warp's group:
//   query  the operand of q·k (bf16: 4 words per 16 components; fp32: a reference to a tile)
//   out    kTiles accumulators of 16x8, unnormalised, relative to max
//   max    largest logit so far, base 2;  sum  of the powers relative to it: equal in the four lanes of a row
// and per tile the scores of at most 8 steps: q·k, then logits, then weights, in the same registers.
template <typename Products, typename Terms>
struct ForwardKernel : simt::BlockOf<kBlockThreads, kMaxTileBytes> {
  using Params = ForwardParams<typename Products::Element>;
  static const char* name() { return "attention forward"; }

  // Replaces the products of one step by logits in base 2; masked ones become kHidden. Updates C.
  static ETC_DEVICE bool logits(const Params& p, int type_index, std::int64_t head, std::int64_t column,
                                const Terms& terms, float (&c)[4]) {
    const TypeView& type = p.work.types[type_index];
    const ScoreView& scores = p.scores[type_index];
    // Masks (bits of a column) and terms (a look-up per pair) are read before the loop, so that loads overlap.
    const unsigned visible = visible_pairs(type, column);
    float term[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    if (scores.mode != ScoreMode::read) terms.of_step(type, column, term);
    bool good = true;
    ETC_UNROLL
    for (int e = 0; e < 4; ++e) {
      const bool seen = (visible >> e & 1u) != 0;
      float logit;
      if (scores.mode == ScoreMode::none) {
        logit = simt::fma(c[e], p.sizes.scale, term[e]) * kLog2E;
      } else {
        // Scores are [columns, 16]: the 8 lanes of a key access one line of 64 bytes.
        const std::int64_t place = score_place(type, head, column, e);
        std::int32_t sum;
        float own = 0.0f;
        if (scores.mode == ScoreMode::read) {
          sum = simt::load(scores.running, place);
        } else {
          own = simt::fma(c[e], p.sizes.scale, term[e]);
          // Rounded to C's step immediately, so that recomputation and rewinding use the same number.
          sum = simt::nearest(own * kScoreStepsPerUnit);
          if (scores.mode != ScoreMode::write) sum = wrapping_add(sum, simt::load(scores.running, place));
          if (scores.mode != ScoreMode::add_unkept) simt::store(scores.running, place, sum);
        }
        const float value = running_value(sum);
        // One flag per thread, checked once after the last tile.
        good = good && (!seen || (in_range(own) && in_range(value)));
        logit = value * (kLog2E * scores.logit_scale);
      }
      c[e] = seen ? logit : kHidden;
    }
    return good;
  }

  // A thread's state over the loop of its warp.
  struct Warp {
    WarpQueries own;
    Terms terms;
    typename Products::Query query;  // in registers or in shared memory: Products decides
    OnlineSoftmax<Products::kTiles> softmax;
    SharedTile<float> stage;      // [kTileKeys, kTableStride] of the warp; staged only
    bool good[2] = {true, true};  // no score of the type left the range of C
  };

  // Pass 1: the logits of the chunk's steps, and in `largest` the maximum including earlier tiles.
  static ETC_DEVICE void logits_of_tile(const Params& p, const typename Products::Tile& keys, const SeenTile& seen,
                                        Warp& w, float (&c)[kTileSteps][4], float (&largest)[2]) {
    const int type = seen.tile.type;
    bool fine = true;
    ETC_UNROLL
    for (int s = 0; s < kTileSteps; ++s) {
      if (s >= seen.chunk.count) break;
      if (p.scores[type].mode != ScoreMode::read) {
        Products::scores(w.query, keys, seen.chunk.row[s], p.sizes.head_size, c[s]);
        if constexpr (Terms::kPairwise) Terms::join_scores(p, place_of_step(p.work, w.own, seen, s), c[s]);
      }
      fine = logits(p, type, w.own.head, seen.chunk.column[s], w.terms, c[s]) && fine;
      ETC_UNROLL
      for (int e = 0; e < 4; ++e) largest[e / 2] = largest[e / 2] >= c[s][e] ? largest[e / 2] : c[s][e];
    }
    w.good[0] = w.good[0] && (fine || type != 0);
    w.good[1] = w.good[1] && (fine || type != 1);
  }

  // Pass 2: powers, relative to the maximum, in place of logits, and their sum. Then dropout.
  static ETC_DEVICE void weights_of_tile(const Params& p, const SeenTile& seen, Warp& w, float (&c)[kTileSteps][4]) {
    // Sums of this tile only, so that the four lanes add their shares once per tile.
    float added[2] = {0.0f, 0.0f};
    ETC_UNROLL
    for (int s = 0; s < kTileSteps; ++s) {
      if (s >= seen.chunk.count) break;
      ETC_UNROLL
      for (int e = 0; e < 4; ++e) {
        const float power = c[s][e] == kHidden ? 0.0f : simt::exp2(c[s][e] - w.softmax.max[e / 2]);  // nan stays nan
        // Summed before dropout and in fp32, whatever the products' precision.
        added[e / 2] += power;
        c[s][e] = power;
      }
      // Dropout is applied after the sum, so weights are not renormalised.
      if (p.dropout.keys.size > 0) {
        const unsigned kept = kept_of_step(w.own, seen, p.dropout.threshold, s);
        ETC_UNROLL
        for (int e = 0; e < 4; ++e) c[s][e] = (kept >> e & 1u) != 0 ? c[s][e] : 0.0f;
      }
    }
    w.softmax.sum[0] += row_sum(added[0]);
    w.softmax.sum[1] += row_sum(added[1]);
  }

  // Processes tile n, which is in the pipe, for one warp.
  static ETC_DEVICE void add_tile(const Params& p, const TilePipe<Products>& pipe, int n, Warp& w) {
    const SeenTile seen = SeenTile::of(p.work, w.own, n);
    float c[kTileSteps][4] = {};  // [16 queries, 64 keys] over the warp: q·k, then logits, then weights
    float largest[2] = {w.softmax.max[0], w.softmax.max[1]};
    logits_of_tile(p, pipe.keys(), seen, w, c, largest);
    w.softmax.follow(largest);
    weights_of_tile(p, seen, w, c);
    if (Products::kStagedWeights) {
      stage_chunk(w.stage, c, seen.chunk);
      simt::sync_warp();
    }
    // Pass 3: out += weights · values of the tile
    Products::weighted_sum(c, seen.chunk, pipe.values(), p.sizes.head_size, w.stage, w.softmax.out);
    if constexpr (Terms::kPairwise) Terms::add_values(p, w.own, seen, w.stage, w.softmax.out);
  }

  static ETC_DEVICE void run(const Params& p) {
    Warp w;
    w.own = WarpQueries::of_block<Terms::kPairwise>(p);
    // q, stage and table are a warp's own; key tiles are the block's.
    SharedArena arena;
    auto shared = ForwardTiles<Products>::take(arena, p.sizes);
    if (Products::kStagedWeights)
      w.stage = shared.stage.part(w.own.warp * kTileKeys * kTableStride, kTileKeys * kTableStride);

    // Before the loop, start all copies at once: queries, the first tile, the terms' table.
    if (Products::kStagedQueries) {
      Products::copy_rows(shared.q, w.own.rows_of_item(p.q), kBlockQueries, p.sizes.head_size,
                          {simt::thread_index(), kBlockThreads});
    }
    shared.pipe.begin(p, w.own.item, w.own.head);
    if (w.own.working()) w.terms.load(p, shared.table, w.own.head, w.own.group);
    Products::load_query(w.query, shared.q, w.own.first(), w.own.rows_of_group(p.q));
    w.softmax.begin();

    for_each_tile(shared.pipe, p, w.own, [&](int n) { add_tile(p, shared.pipe, n, w); });
    if (!w.good[0]) simt::raise(p.range, 0, 1);
    if (!w.good[1]) simt::raise(p.range, 1, 1);
    if (w.own.working()) finish(p, w.own, w.softmax);
  }

  // out = accumulated / sum, lse = max ln2 + log(sum); rows without a visible key: 0 and -inf.
  static ETC_DEVICE void finish(const Params& p, const WarpQueries& own,
                                const OnlineSoftmax<Products::kTiles>& softmax) {
    const int lane = simt::lane_index(), head_size = p.sizes.head_size;
    // Complete results are divided here; partial ones are stored with maximum and sum.
    const bool whole = own.item.slot < 0;
    const std::int64_t slots = (static_cast<std::int64_t>(own.item.slot) * p.sizes.heads + own.head) * kBlockQueries;
    ETC_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int query = own.first() + lane / 4 + 8 * half;
      if (query >= own.item.queries) continue;
      const float max = softmax.max[half], sum = softmax.sum[half];
      const std::int64_t slot = (slots + query) * (head_size + 2), row = own.item.query_row + query;
      const float factor = !whole ? 1.0f : sum == 0.0f ? 0.0f : p.dropout.kept_scale / sum;
      const RowPlace out = whole ? place_of(p.out, row, own.head, head_size) : scratch_place(p.slots, slot);
      store_row(out, softmax.out, half, head_size, factor);
      // One of the four lanes of a row writes the values that exist once per row.
      if (lane % 4 != 0) continue;
      if (whole) {
        const float lse = simt::fma(max, kLn2, simt::log(sum));
        simt::store(p.lse, own.head * p.sizes.queries + row, sum == 0.0f ? -simt::infinity() : lse);
      } else {
        simt::store(p.slots, slot + head_size, max);
        simt::store(p.slots, slot + head_size + 1, sum);
      }
    }
  }
};

// Combines the partial results of split keys, in order of the splits: block x is a set of queries, block y a head,
// threads share its rows.
struct CombineKernel : simt::BlockOf<128> {
  using Params = CombineParams;
  static const char* name() { return "attention combine"; }

  static ETC_DEVICE void run(const Params& p) {
    // Block x: a set of queries with several slots; block y: a head; threads: elements of its rows.
    const SplitQueries split = simt::load(p.split_queries, simt::block_x());
    const std::int64_t head = head_of(p.own_heads, simt::block_x());
    const int head_size = p.sizes.head_size;
    const std::int64_t part = p.sizes.heads * kBlockQueries * (head_size + 2);  // from slot to slot
    // Two components per thread: bf16 rows are written in words.
    const int pairs = ceil_div(head_size, 2);
    for (int i = simt::thread_index(); i < split.queries * pairs; i += kThreads) {
      const int query = i / pairs, d = i % pairs * 2, last = d + 1 < head_size ? 1 : 0;
      const std::int64_t first = ((split.first_slot * p.sizes.heads + head) * kBlockQueries + query) * (head_size + 2);
      // Every thread reads all maxima and sums of the row: they are few, and this needs no synchronisation.
      float max = kHidden;
      for (int n = 0; n < split.slots; ++n) {
        const float other = simt::load(p.slots, first + n * part + head_size);
        max = max > other ? max : other;
      }
      float sum = 0.0f, total[2] = {0.0f, 0.0f};
      for (int n = 0; n < split.slots; ++n) {
        const float own = simt::load(p.slots, first + n * part + head_size);
        // A split in which the query saw no key has no output.
        const float weight = own == kHidden ? 0.0f : simt::exp2(own - max);
        sum = simt::fma(weight, simt::load(p.slots, first + n * part + head_size + 1), sum);
        for (int e = 0; e <= last; ++e) {
          total[e] = simt::fma(weight, simt::load(p.slots, first + n * part + d + e), total[e]);
        }
      }
      const std::int64_t row = split.query_row + query;
      const bool seen = sum != 0.0f;
      const float factor = seen ? p.kept_scale / sum : 0.0f;
      store_two(place_of(p.out, row, head, head_size), d, head_size, seen ? total[0] * factor : 0.0f,
                seen ? total[1] * factor : 0.0f);
      if (d == 0) {
        simt::store(p.lse, head * p.sizes.queries + row,
                    seen ? simt::fma(max, kLn2, simt::log(sum)) : -simt::infinity());
      }
    }
  }
};

}  // namespace etc::sparse::cuda
