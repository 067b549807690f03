// The parts of a score that need query and key of each pair, forward and backward:
//
//   m_ij = q_i·k_j | factor[r] q_i·k_j | sum_c q_ic k_jc w[r]_c        then + k_j·rel_k[r]        r = label_ij
//
// They are passes over a key block's products before the logit loop, so a model without them pays one branch per key
// block. Labels by distance: one pass adds these parts and the terms of score_terms-inl.h, with one load each per
// column and vector (distance_rows-inl.h); k·rel_k is multiplied once per task for all places of a key. Listed labels,
// w, and rel_k with many distances: a column with one label takes rel_k and w from one table row; other columns use
// kGroup rows, with one dot product each. Highway's per-target include guard.
#if defined(SPARSE_CPU_PAIR_TERMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_PAIR_TERMS_INL_H_
#undef SPARSE_CPU_PAIR_TERMS_INL_H_
#else
#define SPARSE_CPU_PAIR_TERMS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "sparse/cpu/block_labels-inl.h"
#include "sparse/cpu/distance_rows-inl.h"
#include "sparse/cpu/group_scratch-inl.h"
#include "sparse/cpu/register_tile-inl.h"
#include "sparse/cpu/row_arithmetic-inl.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// rows = k⊙w[label] for a step's columns that have one label, 0 for the others.   k, rows [kRunStep, stride]
HWY_INLINE void scale_keys(const AnyLabels& labels, std::int64_t first, const float* k, const float* w,
                           std::int64_t stride, float* rows) {
  std::fill_n(rows, kRunStep * stride, 0.0f);
  for (std::int64_t j = 0; j < kRunStep; ++j) {
    const std::uint32_t code = labels.code(first + j);
    if (code < kFirstMixed) add_row(1.0f, k + j * stride, w + code * stride, stride, rows + j * stride);
  }
}

// s = sum_c q_c k_c w[label]_c, one step of keys at a time. Columns with one label use k⊙w in place of the key; columns
// with several labels are computed pair by pair.   k [keys, stride], s [keys, kGroup]
HWY_INLINE void product_dots(const HeadContext& head, const GroupScratch& scratch, const AnyLabels& labels,
                             const float* k, std::int64_t keys, float* s) {
  const std::int64_t stride = head.stride;
  const float* const w = scratch.terms.products;  // [labels, stride]
  float* const rows = scratch.terms.rows;         // [kRunStep, stride]
  for (std::int64_t first = 0; first < keys; first += kRunStep) {
    scale_keys(labels, first, k + first * stride, w, stride, rows);
    dot_products(scratch.q_lanes, {rows, stride, kRunStep}, head.head_size, s + first * kGroup);
    for (std::int64_t j = first; j < first + kRunStep; ++j) {
      const std::uint32_t code = labels.code(j);
      for (int i = 0; i < kGroup && code >= kFirstMixed; ++i) {
        s[j * kGroup + i] =
            row_dot(scratch.q_rows + i * stride, k + j * stride, w + labels.lane(code, i) * stride, stride);
      }
    }
  }
}

// s += k·rel_k[label].   k [keys, stride], s [keys, kGroup]
HWY_INLINE void add_key_dots(const HeadContext& head, const TermScratch& terms, const AnyLabels& labels, const float* k,
                             std::int64_t keys, float* s) {
  const std::int64_t stride = head.stride;
  for (std::int64_t j = 0; j < keys; ++j) {
    const std::uint32_t code = labels.code(j);
    const float* const key = k + j * stride;  // [stride]
    if (code < kFirstMixed) {
      const float dot = row_dot(key, terms.key_vectors + code * stride, stride);
      for (int i = 0; i < kGroup; ++i) s[j * kGroup + i] += dot;
      continue;
    }
    for (int i = 0; i < kGroup; ++i) {
      s[j * kGroup + i] += row_dot(key, terms.key_vectors + labels.lane(code, i) * stride, stride);
    }
  }
}

// s *= factor[label].   factors [labels], s [keys, kGroup]
HWY_INLINE void apply_factors(const float* factors, const AnyLabels& labels, std::int64_t keys, float* s) {
  const FloatTag d;
  for (std::int64_t j = 0; j < keys; ++j) {
    const std::uint32_t code = labels.code(j);
    for (int v = 0; v < kGroupVectors; ++v) {
      float* const place = s + j * kGroup + v * kLanes;  // [kLanes]
      const FloatVec factor =
          code < kFirstMixed ? hn::Set(d, factors[code]) : hn::GatherIndex(d, factors, labels.lanes(code, v));
      hn::StoreU(hn::Mul(hn::LoadU(d, place), factor), d, place);
    }
  }
}

// Products of rows [multiplied, end) of a panel with rel_k in the order of the list of distances, one product per
// place; all groups of the task read them.
HWY_NOINLINE inline void multiply_keys(const HeadContext& head, const DistanceScratch& own, KeyPanel& panel,
                                       std::int64_t end) {
  const std::int64_t places = own.key_places, from = panel.multiplied();
  if (end <= from) return;
  panel.set_multiplied(end);
  for (std::int64_t at = from; at < end; at += kTileRows) {
    // The last tile may begin before `from` and recompute the same products.
    const std::int64_t row = std::min(at, end - kTileRows);
    for (std::int64_t n = 0; n < places; n += kTileVectors * kLanes) {
      register_tile<kTileRows, kTileVectors, Sum::fresh>({panel.k(row), head.stride, 1}, {own.key_columns + n, places},
                                                         {panel.products(row, places) + n, places}, head.head_size);
    }
  }
  if (panel.has_dproducts()) std::fill_n(panel.dproducts(from, places), (end - from) * places, 0.0f);
}

// Replaces the products of queries and keys by m, for a key block with labels by distance:
// m = factor[label] m + q·rel[label] + rel_bias[label] + k·rel_k[label], for the parts of the model.   m [keys, kGroup]
HWY_NOINLINE inline void join_by_distance(const TermScratch& terms, const KeyBlock& block, std::int64_t keys,
                                          float* m) {
  const FloatTag d;
  const DistanceScratch& own = terms.by_distance[block.set];
  const LabelsByDistance labels = labels_by_distance(block);
  const float *const factors = own.factors, *const table = own.table;
  const float* const products = own.key_places > 0 ? block.panel->products(block.row, own.key_places) : nullptr;
  for (std::int64_t j = 0; j < keys; ++j) {
    const std::int64_t at = labels.place(j);
    for (int v = 0; v < kGroupVectors; ++v) {
      float* const place = m + j * kGroup + v * kLanes;  // [kLanes]
      FloatVec x = hn::LoadU(d, place);
      if (factors != nullptr) x = hn::Mul(x, hn::LoadU(d, factors + at + v * kLanes));
      if (table != nullptr) x = hn::Add(x, hn::LoadU(d, table + at * kGroup + v * kLanes));
      if (products != nullptr) x = hn::Add(x, hn::LoadU(d, products + j * own.key_places + at + v * kLanes));
      hn::StoreU(x, d, place);
    }
  }
}

// Not inlined, so that the loops of models without these parts are not affected.   block: starts at the first key
HWY_NOINLINE inline void joined_dots(const HeadContext& head, const GroupScratch& scratch, const KeyBlock& block,
                                     std::int64_t keys, float* s) {
  const TermScratch& terms = scratch.terms;
  const DistanceScratch& own = terms.by_distance[block.set];
  const AnyLabels labels = labels_of(block);
  const float* const k = block.panel->k(block.row);  // [keys, stride]
  if (terms.products != nullptr) {
    product_dots(head, scratch, labels, k, keys, s);
  } else {
    dot_products(scratch.q_lanes, {k, head.stride, keys}, head.head_size, s);
  }
  if (terms.dots != nullptr) std::copy_n(s, keys * kGroup, terms.dots);
  if (own.key_places > 0) multiply_keys(head, own, *block.panel, block.row + keys);
  if (own.used()) {
    join_by_distance(terms, block, keys, s);
  } else if (terms.factors != nullptr) {
    apply_factors(terms.factors, labels, keys, s);
  }
  if (terms.key_vectors != nullptr && own.key_places == 0) add_key_dots(head, terms, labels, k, keys, s);
}

// Columns of a key block, whole steps, and whether their type carries running scores.
struct BlockColumns {
  std::int64_t first, keys;
  bool scored;
  ColumnsAhead ahead = {};
};

// m of some columns of a key block, without a late term, which the logit loop adds.   s [keys, kGroup]
// Every caller executes the same instructions per column, so rewinding subtracts exactly the bits that were added.
HWY_INLINE void dots_of_block(const HeadContext& head, const KeyBlock& block, const BlockColumns& columns,
                              const GroupScratch& scratch, float* s) {
  auto [first, keys, scored, ahead] = columns;
  const bool late = !scored && scratch.terms.late[block.set];
  if (HWY_LIKELY(!scratch.terms.joined[block.set]) || late) {
    const DistanceScratch& own = scratch.terms.by_distance[block.set];
    if (late && own.key_places > 0) multiply_keys(head, own, *block.panel, block.row + first + keys);
    return dot_products(scratch.q_lanes, {block.panel->k(block.row + first), head.stride, keys, ahead}, head.head_size,
                        s);
  }
  ahead.prefetch(keys);
  joined_dots(head, scratch, block.from(first), keys, s);
}

// Backward, w: dq_i += g_ij w⊙k_j, dk_j += g_ij w⊙q_i, dw += g_ij q_i⊙k_j, one step of keys at a time.
//   g [keys, kGroup]
HWY_INLINE void product_gradients(const HeadContext& head, const GroupScratch& scratch, const AnyLabels& labels,
                                  const KeyBlock& block, const float* g) {
  const std::int64_t stride = head.stride;
  const TermScratch& terms = scratch.terms;
  float* const keys = terms.rows;                         // [kRunStep, stride]  k⊙w
  float* const queries = terms.rows + kRunStep * stride;  // [kRunStep, stride]  sum_i g_i q_i
  for (std::int64_t first = 0; first < block.keys; first += kRunStep) {
    const float* const own = g + first * kGroup;  // [kRunStep, kGroup]
    scale_keys(labels, first, block.panel->k(block.row + first), terms.products, stride, keys);
    weighted_sum(own, keys, stride, kRunStep, nullptr, scratch.out);
    std::fill_n(queries, kRunStep * stride, 0.0f);
    outer_products(own, scratch.q_rows, stride, kRunStep, queries);
    for (std::int64_t j = 0; j < kRunStep; ++j) {
      const std::uint32_t code = labels.code(first + j);
      const float* const key = block.panel->k(block.row + first + j);  // [stride]
      float* const dk = block.panel->dk(block.row + first + j);        // [stride]
      if (code < kFirstMixed) {
        add_row(1.0f, queries + j * stride, terms.products + code * stride, stride, dk);
        add_row(1.0f, queries + j * stride, key, stride, terms.dw + code * stride);
        continue;
      }
      for (int i = 0; i < kGroup; ++i) {
        const std::int64_t label = labels.lane(code, i);
        const float* const query = scratch.q_rows + i * stride;  // [stride]
        const float* const w = terms.products + label * stride;  // [stride]
        const float pair = own[j * kGroup + i];
        add_row(pair, w, key, stride, scratch.out + i * stride);
        add_row(pair, w, query, stride, dk);
        add_row(pair, query, key, stride, terms.dw + label * stride);
      }
    }
  }
}

// Backward, rel_k: dk_j += g_ij rel_k, drel_k += g_ij k_j.   g [keys, kGroup]
HWY_INLINE void key_vector_gradients(const HeadContext& head, const TermScratch& terms, const AnyLabels& labels,
                                     const KeyBlock& block, const float* g) {
  const std::int64_t stride = head.stride;
  for (std::int64_t j = 0; j < block.keys; ++j) {
    const std::uint32_t code = labels.code(j);
    const float* const key = block.panel->k(block.row + j);  // [stride]
    float* const dk = block.panel->dk(block.row + j);        // [stride]
    const auto add = [&](float own, std::int64_t label) {
      add_row(own, terms.key_vectors + label * stride, stride, dk);
      add_row(own, key, stride, terms.drel_k + label * stride);
    };
    const float* const column = g + j * kGroup;  // [kGroup]
    if (code < kFirstMixed) {
      float total = 0.0f;
      for (int i = 0; i < kGroup; ++i) total += column[i];
      add(total, code);
      continue;
    }
    for (int i = 0; i < kGroup; ++i) add(column[i], labels.lane(code, i));
  }
}

// The same for labels by distance: sums over the task's groups for each key and place.
HWY_INLINE void add_key_places(const DistanceScratch& own, const LabelsByDistance& labels, const KeyBlock& block,
                               const float* g) {
  float* const rows = block.panel->dproducts(block.row, own.key_places);  // [keys, key_places]
  for (std::int64_t j = 0; j < block.keys; ++j) add_run(g + j * kGroup, 1, rows + j * own.key_places + labels.place(j));
}

// Rows [first, first + count) of a panel, in whole steps.
struct KeyRows {
  std::int64_t first, count;
};

// Backward, for some keys and kVectors vectors of components from c on: dk += dproducts rel_k, drel_k += dproductsᵀ k.
template <int kVectors>
HWY_INLINE void key_place_sums(const DistanceScratch& own, KeyPanel& panel, const KeyRows& rows, std::int64_t stride,
                               std::int64_t c) {
  const std::int64_t places = own.key_places, row = rows.first;
  const float* const sums = panel.dproducts(row, places);  // [count, places]
  for (std::int64_t j = 0; j < rows.count; j += kTileRows) {
    register_tile<kTileRows, kVectors, Sum::added>({sums + j * places, places, 1}, {own.key_vectors + c, stride},
                                                   {panel.dk(row + j) + c, stride}, places);
  }
  for (std::int64_t n = 0; n < places; n += kTileRows) {
    register_tile<kTileRows, kVectors, Sum::added>({sums + n, 1, places}, {panel.k(row) + c, stride},
                                                   {own.dkey_vectors + n * stride + c, stride}, rows.count);
  }
}

// Backward, for rows up to `end` that no later group sees, or at the end of a task: dk += dproducts rel_k,
// drel_k += dproductsᵀ k.
HWY_NOINLINE inline void finish_key_places(const HeadContext& head, const DistanceScratch& own, KeyPanel& panel,
                                           std::int64_t end) {
  const std::int64_t stride = head.stride, places = own.key_places, from = panel.finished();
  // Processes whole tiles. Sums are zeroed after they are added, so rows processed early may receive more.
  const std::int64_t stop = std::min(std::max<std::int64_t>(end, kRunStep), panel.multiplied());
  if (stop <= from) return;
  panel.set_finished(std::min(end, stop));
  // Many keys at a time if possible, because each call reads and writes drel_k.
  constexpr std::int64_t kMany = 8 * kRunStep;
  for (std::int64_t at = from; at < stop;) {
    const std::int64_t count = stop - at >= kMany ? kMany : kRunStep;
    const KeyRows rows{std::min(at, stop - count), count};
    at += count;
    std::int64_t c = 0;
    for (; c + kTileVectors * kLanes <= stride; c += kTileVectors * kLanes) {
      key_place_sums<kTileVectors>(own, panel, rows, stride, c);
    }
    for (; c < stride; c += kLanes) key_place_sums<1>(own, panel, rows, stride, c);
    std::fill_n(panel.dproducts(rows.first, places), count * places, 0.0f);
  }
}

// The same if the panel's key set has these sums.
HWY_INLINE void finish_keys(const HeadContext& head, const TermScratch& terms, KeyPanel& panel, std::int64_t end) {
  const DistanceScratch& own = terms.by_distance[panel.set()];
  if (own.key_places > 0) finish_key_places(head, own, panel, end);
}

// Backward, factor[label]: dfactor += g q·k, and g becomes the gradient of q·k.   g [keys, kGroup]
HWY_INLINE void factor_gradients(const TermScratch& terms, const KeyBlock& block, float* g) {
  const FloatTag d;
  const DistanceScratch& own = terms.by_distance[block.set];
  if (own.used()) {
    const LabelsByDistance labels = labels_by_distance(block);
    add_products_to_places(labels, block.keys, g, terms.dots, own.dfactors);
    for (std::int64_t j = 0; j < block.keys; ++j) {
      for (int v = 0; v < kGroupVectors; ++v) {
        float* const place = g + j * kGroup + v * kLanes;  // [kLanes]
        hn::StoreU(hn::Mul(hn::LoadU(d, place), hn::LoadU(d, own.factors + labels.place(j) + v * kLanes)), d, place);
      }
    }
    return;
  }
  for (std::int64_t at = 0; at < block.keys * kGroup; at += kLanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, terms.dots + at), hn::LoadU(d, g + at)), d, terms.dots + at);
  }
  add_by_label(listed_labels(block), block.keys, terms.dots, terms.dfactor);
  apply_factors(terms.factors, labels_of(block), block.keys, g);
}

// Backward of one key block: the gradients of the parts by distance (rel, rel_bias) and of factors, from g = scale·dC
// [keys, kGroup], which becomes the gradient of q·k. terms.dots: q·k.
HWY_INLINE void join_gradients(const TermScratch& terms, const KeyBlock& block, float* g) {
  const DistanceScratch& own = terms.by_distance[block.set];
  if (own.dtable != nullptr) add_to_places(labels_by_distance(block), block.keys, g, own.dtable);
  if (terms.factors != nullptr) factor_gradients(terms, block, g);
}

// Backward of one key block: dq, dk and the tables' gradients. carried: q·k was not computed for this block.
HWY_NOINLINE inline void joined_gradients(const HeadContext& head, const GroupScratch& scratch, const KeyBlock& block,
                                          float* g, bool carried) {
  const TermScratch& terms = scratch.terms;
  const DistanceScratch& own = terms.by_distance[block.set];
  const float* k = block.panel->k(block.row);  // [keys, stride]
  if (own.key_places > 0) {
    if (carried) multiply_keys(head, own, *block.panel, block.row + block.keys);
    add_key_places(own, labels_by_distance(block), block, g);
  } else if (terms.key_vectors != nullptr) {
    key_vector_gradients(head, terms, labels_of(block), block, g);
  }
  if (carried && terms.factors != nullptr) {
    dot_products(scratch.q_lanes, {k, head.stride, block.keys}, head.head_size, terms.dots);
  }
  join_gradients(terms, block, g);
  if (terms.products != nullptr) return product_gradients(head, scratch, labels_of(block), block, g);
  weighted_sum(g, k, head.stride, block.keys, block.tiles->visible.data() + block.column, scratch.out);
  outer_products(g, scratch.q_rows, head.stride, block.keys, block.panel->dk(block.row));
}

// Backward of m: dq += and dk += of one key block. scratch.ds holds scale·dC; pair terms overwrite it.
HWY_INLINE void dots_gradients(const HeadContext& head, const KeyBlock& block, const GroupScratch& scratch,
                               bool carried) {
  if (HWY_LIKELY(!scratch.terms.joined[block.set])) {
    weighted_sum(scratch.ds, block.panel->k(block.row), head.stride, block.keys,
                 block.tiles->visible.data() + block.column, scratch.out);
    outer_products(scratch.ds, scratch.q_rows, head.stride, block.keys, block.panel->dk(block.row));
    return;
  }
  joined_gradients(head, scratch, block, scratch.ds, carried);
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
