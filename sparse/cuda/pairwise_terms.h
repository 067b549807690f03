// The terms that need query and key pair by pair, and tables with more rows than a group's table can have: a policy of
// the tile loops (score_terms.h) that reads rows of the tables from global memory for every pair, in fp32.
//
//   m_ij  = q_i·k_j | factor[r] q_i·k_j | sum_c q_ic k_jc w[r]_c                                      r = label_ij
//   s_ij  = scale (m_ij + q_i·rel[r] + k_j·rel_k[r] + rel_bias[r])          join_scores
//   out_i = sum_j weights_ij (v_j + rel_v[r])                               add_values
//   dp_ij = dout_i·(v_j + rel_v[r])                                         join_gradients
//   dq_i  = sum_j g_ij (e_ij w[r]⊙k_j + rel[r])                             add_query_gradients      e: factor or 1
//   dk_j  = sum_i g_ij (e_ij w[r]⊙q_i + rel_k[r])                           add_key_gradients
// The tables' gradients are in table_gradients.h. Cost: D multiply-adds per pair for each of these, and no extra
// memory; a table of every query and label would be larger than all scores.
#pragma once

#include <cstdint>

#include "sparse/cuda/query_block.h"
#include "sparse/cuda/score_terms.h"

namespace etc::sparse::cuda {

// The place of a step's 16 queries and 8 keys.
struct StepPlace {
  int type = 0;
  std::int64_t head = 0, column = 0;
  std::int64_t query_row = 0, key_row = 0;  // of the group's first query and the step's first key
  std::int64_t distance = 0;                // of the first pair, with the example's shift
};

// first_query, first_key: within the example, of group and step.
ETC_DEVICE std::int64_t distance_of(const TypeView& type, int example, int first_query, int first_key) {
  const std::int64_t shift = type.distance.shifts.size > 0 ? simt::load(type.distance.shifts, example) : 0;
  return first_key + shift - first_query;
}

// The place of step s of a warp's steps in a tile.
ETC_DEVICE StepPlace place_of_step(const WorkList& work, const WarpQueries& own, const SeenTile& seen, int s) {
  const int first_key = seen.tile.first_key + seen.chunk.row[s];
  StepPlace at;
  at.type = seen.tile.type;
  at.head = own.head;
  at.column = seen.chunk.column[s];
  at.query_row = own.row();
  at.key_row = (at.type == 0 ? own.item.key_row[0] : own.item.key_row[1]) + first_key;
  at.distance = distance_of(work.types[at.type], own.item.example, own.item.first_query + own.first(), first_key);
  return at;
}

// The label of a pair of a labelled type; for masked pairs an arbitrary label.
ETC_DEVICE int label_of_pair(const TypeView& type, const StepPlace& at, int query, int key) {
  const DistanceView& distance = type.distance;
  if (distance.rows.size > 0) {
    const std::int64_t own = at.distance + key - query - distance.first, last = distance.rows.size - 1;
    return simt::load(distance.rows, own < 0 ? 0 : own > last ? last : own);
  }
  const std::uint32_t label = simt::load(type.label, at.column + key);
  if (label < kFirstMixed) return static_cast<int>(label);
  return simt::load(type.mixed, static_cast<std::int64_t>(label - kFirstMixed) * kGroup + query);
}

// The policy. join_scores adds all terms before scaling, so of_step is that of NoTerms and adds nothing.
struct PairwiseTerms : NoTerms {
  static constexpr bool kPairwise = true;

  // Row of a pair's label in the tables.
  template <typename Params>
  static ETC_DEVICE std::int64_t row_of(const Params& p, const StepPlace& at, int query, int key) {
    return table_row(p.sizes, label_of_pair(p.work.types[at.type], at, query, key), at.head);
  }

  // One pair's m and the terms added to it, from q·k. Multiplications and additions must not be fused: forward and both
  // backward kernels must compute the same bits.
  template <typename Params>
  static ETC_DEVICE float joined(const Params& p, const StepPlace& at, int query, int key, float dot) {
    const TableViews& tables = p.tables;
    const int head_size = p.sizes.head_size;
    const std::int64_t row = row_of(p, at, query, key), first = row * head_size;
    const auto& keys = p.k[at.type];
    const std::int64_t q = at.head * p.q.head_stride + (at.query_row + query) * p.q.row_stride;
    const std::int64_t k = at.head * keys.head_stride + (at.key_row + key) * keys.row_stride;
    if (tables.factor.size > 0) dot = simt::multiply(dot, simt::load(tables.factor, row));
    const bool of_query = tables.rel.size > 0, of_key = tables.rel_k.size > 0, of_both = tables.w.size > 0;
    float sum = 0.0f, product = 0.0f;
    for (int d = 0; (of_query || of_key || of_both) && d < head_size; ++d) {
      const float qd = simt::load(p.q.values, q + d), kd = simt::load(keys.values, k + d);
      if (of_query) sum = simt::fma(qd, simt::load(tables.rel, first + d), sum);
      if (of_key) sum = simt::fma(kd, simt::load(tables.rel_k, first + d), sum);
      if (of_both) product = simt::fma(simt::multiply(qd, kd), simt::load(tables.w, first + d), product);
    }
    if (tables.rel_bias.size > 0) sum = simt::add(sum, simt::load(tables.rel_bias, row));
    return simt::add(of_both ? product : dot, sum);
  }

  // Accumulator e in a loop that is not unrolled: selected, because indexing would move all of them to local memory.
  static ETC_DEVICE float pick(const float (&c)[4], int e) {
    const float low = e == 0 ? c[0] : c[1], high = e == 2 ? c[2] : c[3];
    return e < 2 ? low : high;
  }
  static ETC_DEVICE void put(float (&c)[4], int e, float x) {
    c[0] = e == 0 ? x : c[0];
    c[1] = e == 1 ? x : c[1];
    c[2] = e == 2 ? x : c[2];
    c[3] = e == 3 ? x : c[3];
  }

  // Replaces q·k of a step by scores / scale. Masked pairs keep q·k, because their rows may not exist.
  template <typename Params>
  static ETC_DEVICE void join_scores(const Params& p, const StepPlace& at, float (&c)[4]) {
    const TypeView& type = p.work.types[at.type];
    if (!type.labelled()) return;
    const unsigned visible = visible_pairs(type, at.column);
    ETC_KEEP_LOOP
    for (int e = 0; e < 4; ++e) {
      if ((visible >> e & 1u) != 0) put(c, e, joined(p, at, query_of(e), key_of(e), pick(c, e)));
    }
  }

  // Replaces dout·v of a step by dout·(v + rel_v).
  template <typename Params>
  static ETC_DEVICE void join_gradients(const Params& p, const StepPlace& at, float (&dp)[4]) {
    const TypeView& type = p.work.types[at.type];
    if (p.tables.rel_v.size == 0 || !type.labelled()) return;
    const unsigned visible = visible_pairs(type, at.column);
    ETC_KEEP_LOOP
    for (int e = 0; e < 4; ++e) {
      if ((visible >> e & 1u) == 0) continue;
      float sum = pick(dp, e);
      const std::int64_t row = row_of(p, at, query_of(e), key_of(e)) * p.sizes.head_size;
      const std::int64_t dout = at.head * p.dout.head_stride + (at.query_row + query_of(e)) * p.dout.row_stride;
      for (int d = 0; d < p.sizes.head_size; ++d) {
        sum = simt::fma(simt::load(p.dout.values, dout + d), simt::load(p.tables.rel_v, row + d), sum);
      }
      put(dp, e, sum);
    }
  }

  // o[half] += weight · value(d), for the components of one row that a lane owns.
  template <int kTiles, typename Value>
  static ETC_DEVICE void add_row(int head_size, int half, float weight, const Value& value, float (&o)[kTiles][4]) {
    ETC_UNROLL
    for (int t = 0; t < kTiles; ++t) {
      ETC_UNROLL
      for (int e = 0; e < 2; ++e) {
        const int d = 8 * t + simt::lane_index() % 4 * 2 + e;
        if (d < head_size) o[t][2 * half + e] = simt::fma(weight, value(d), o[t][2 * half + e]);
      }
    }
  }

  // Component d of e w⊙x + added, x a key or a query. row: of the pair's label.
  template <typename Params>
  static ETC_DEVICE float scaled(const Params& p, std::int64_t row, const Span<const float>& added, int d, float x) {
    const TableViews& tables = p.tables;
    const std::int64_t at = row * p.sizes.head_size + d;
    if (tables.factor.size > 0) x *= simt::load(tables.factor, row);
    if (tables.w.size > 0) x *= simt::load(tables.w, at);
    return added.size > 0 ? x + simt::load(added, at) : x;
  }

  // Calls body(at, s, j, half, weight) for key j of every step s of a staged chunk and each of the lane's rows.
  template <typename Params, typename Body>
  static ETC_DEVICE void for_each_column(const Params& p, const WarpQueries& own, const SeenTile& seen,
                                         const SharedTile<float>& stage, const Body& body) {
    ETC_KEEP_LOOP
    for (int s = 0; s < seen.chunk.count; ++s) {
      const StepPlace at = place_of_step(p.work, own, seen, s);
      ETC_KEEP_LOOP
      for (int j = 0; j < kRunStep; ++j) {
        ETC_UNROLL
        for (int half = 0; half < 2; ++half) {
          const float weight = stage.load((kRunStep * s + j) * kTableStride + simt::lane_index() / 4 + 8 * half);
          if (weight != 0.0f) body(at, s, j, half, weight);  // masked and dropped pairs have weight zero
        }
      }
    }
  }

  // out += weights rel_v, with the staged weights; online softmax rescales it together with out.
  template <int kTiles, typename Params>
  static ETC_DEVICE void add_values(const Params& p, const WarpQueries& own, const SeenTile& seen,
                                    const SharedTile<float>& stage, float (&out)[kTiles][4]) {
    if (p.tables.rel_v.size == 0 || !p.work.types[seen.tile.type].labelled()) return;
    for_each_column(p, own, seen, stage, [&](const StepPlace& at, int, int j, int half, float weight) {
      const std::int64_t row = row_of(p, at, simt::lane_index() / 4 + 8 * half, j) * p.sizes.head_size;
      add_row(
          p.sizes.head_size, half, weight, [&](int d) { return simt::load(p.tables.rel_v, row + d); }, out);
    });
  }

  // dq += ds (e w⊙k + rel) for a labelled type, with the staged ds.
  template <typename Products, typename Params>
  static ETC_DEVICE void add_query_gradients(const Params& p, const WarpQueries& own, const SeenTile& seen,
                                             const SharedTile<float>& stage, const typename Products::Tile& keys,
                                             float (&dq)[Products::kTiles][4]) {
    const int stride = Products::stride(p.sizes.head_size);
    for_each_column(p, own, seen, stage, [&](const StepPlace& at, int s, int j, int half, float weight) {
      const std::int64_t row = row_of(p, at, simt::lane_index() / 4 + 8 * half, j);
      const int key = (seen.chunk.row[s] + j) * stride;
      add_row(
          p.sizes.head_size, half, weight, [&](int d) { return scaled(p, row, p.tables.rel, d, keys.load(key + d)); },
          dq);
    });
  }

  // dk += ds (e w⊙q + rel_k) of the warp's 16 keys over the block's queries, for a labelled type.
  //   ds [kBlockQueries, kPairStride], labels [kBlockQueries, kTileKeys], queries [kBlockQueries, stride]
  template <typename Products, typename Params>
  static ETC_DEVICE void add_key_gradients(const Params& p, std::int64_t head, const typename Products::Tile& ds,
                                           const SharedTile<std::uint16_t>& labels,
                                           const typename Products::Tile& queries, float (&dk)[Products::kTiles][4]) {
    const int stride = Products::stride(p.sizes.head_size), first = kGroup * simt::warp_index();
    ETC_KEEP_LOOP
    for (int i = 0; i < kBlockQueries; ++i) {
      ETC_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int key = first + simt::lane_index() / 4 + 8 * half;
        const float weight = ds.load(i * Products::kPairStride + key);
        if (weight == 0.0f) continue;
        const std::int64_t row = table_row(p.sizes, labels.load(i * kTileKeys + key), head);
        add_row(
            p.sizes.head_size, half, weight,
            [&](int d) { return scaled(p, row, p.tables.rel_k, d, queries.load(i * stride + d)); }, dk);
      }
    }
  }
};

}  // namespace etc::sparse::cuda
