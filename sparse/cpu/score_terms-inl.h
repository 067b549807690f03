// The summands of a score that depend on query and label alone: q·rel[label] and rel_bias[label], forward and backward.
// Those that need query and key pair by pair are in pair_terms-inl.h, those of the values in value_terms-inl.h.
//
//   s_ij = scale (m_ij + q_i·rel[label_ij] + rel_bias[label_ij])        m_ij: q_i·k_j and what joins it
//
// There are fewer labels than keys, so the relative part of every label is computed once per group, and a pair looks
// its own up:
//   table[r][i] = scale (q_i·rel[r] + rel_bias[r])      s_ij = scale m_ij + table[label_ij][i]
// Backward is the mirror image: dtable[r][i] sums the gradients of the pairs with label r; at the group's end one
// small product takes dtable to dq and to the tables.
//
// A term is a policy of the tile loop, chosen per key block at compile time (with_term): a key block without labels
// runs the loop in which the term does not occur. Highway's per-target include guard.
#if defined(SPARSE_CPU_SCORE_TERMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_SCORE_TERMS_INL_H_
#undef SPARSE_CPU_SCORE_TERMS_INL_H_
#else
#define SPARSE_CPU_SCORE_TERMS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "sparse/cpu/block_labels-inl.h"
#include "sparse/cpu/group_scratch-inl.h"
#include "sparse/cpu/lanes-inl.h"
#include "sparse/cpu/register_tile-inl.h"
#include "sparse/cpu/term_scratch-inl.h"
#include "sparse/cpu/tile_walk.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Labels [begin, end), whole steps of them.
struct LabelRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t count() const { return end - begin; }
};

// The labels a group may look up. Of unclipped distances it sees about half the rows, and only these are multiplied.
inline LabelRange labels_of_group(const TermScratch& terms, const SeenBlocks& seen) {
  const LabelRange all{0, terms.labels};
  // Of few labels most are seen.
  if (terms.labels <= 2 * kGroup) return all;
  std::int64_t least = terms.labels, most = 0;
  for (std::int64_t n = 0; n < seen.count; ++n) {
    const KeyBlock& block = seen.blocks[n];
    const DistanceLabels& labels = block.tiles->distance;
    if (!labels.used()) return all;
    // Places in `lanes` fall with the distance; the queries behind the group's first are kGroup - 1 more of them.
    const std::int64_t first = labels.codes.size() - 1 - labels.place(block.distance + block.keys - 1);
    const std::int64_t last = labels.codes.size() - 1 - labels.place(block.distance) + kGroup - 1;
    const auto [low, high] = std::minmax_element(labels.lanes.data() + first, labels.lanes.data() + last + 1);
    least = std::min<std::int64_t>(least, *low);
    most = std::max<std::int64_t>(most, *high);
  }
  return {least / kRunStep * kRunStep, std::min(terms.labels, round_up(most + 1, kRunStep))};
}

// table = scale (table + rel_bias); `table` holds q·rel.
HWY_INLINE void finish_table(const HeadContext& head, const TermScratch& terms, const LabelRange& range) {
  const FloatTag d;
  const FloatVec scale = hn::Set(d, head.scale);
  for (std::int64_t r = range.begin; r < range.end; ++r) {
    const FloatVec bias = hn::Set(d, terms.biases[r]);
    for (int v = 0; v < kGroupVectors; ++v) {
      float* place = terms.table + r * kGroup + v * kLanes;  // [kLanes]
      hn::StoreU(hn::Mul(hn::Add(hn::LoadU(d, place), bias), scale), d, place);
    }
  }
}

// Task begins: one head's tables, contiguous. Biases alone make a table that is the same for every group: it is made
// here, once.
inline void load_terms(const AttentionInputs& in, std::int64_t head_index, const HeadContext& head,
                       const TermScratch& terms) {
  const RelativeTable& given = in.relative;
  load_table_rows(in, given.vectors, head_index, head, terms.labels, terms.vectors);
  load_table_rows(in, given.key_vectors, head_index, head, terms.labels, terms.key_vectors);
  load_table_rows(in, given.products, head_index, head, terms.labels, terms.products);
  load_table_rows(in, given.value_vectors, head_index, head, terms.labels, terms.value_vectors);
  if (given.factors != nullptr) load_table_numbers(in, given.factors, head_index, terms.labels, terms.factors);
  if (terms.added == 0) return;
  load_table_numbers(in, given.biases, head_index, terms.labels, terms.biases);
  if (given.vectors == nullptr) {
    std::fill_n(terms.table, terms.labels * kGroup, 0.0f);
    return finish_table(head, terms, {0, terms.labels});
  }
  for (std::int64_t r = 0; head.bf16 != nullptr && r < terms.labels; ++r) {
    head.bf16->round_row(terms.vectors + r * head.stride, head.stride, head.bf16_stride,
                         terms.bf16_vectors + r * head.bf16_stride);
  }
}

// Group begins: its table.   q_lanes [D, kGroup]
HWY_INLINE void make_table(const HeadContext& head, const float* q_lanes, const TermScratch& terms,
                           const LabelRange& range) {
  if (terms.vectors == nullptr) return;
  dot_products(q_lanes, terms.vectors + range.begin * head.stride, head.stride, range.count(), head.head_size,
               terms.table + range.begin * kGroup);
  finish_table(head, terms, range);
}

// The same with rounded operands.   q_pairs [bf16_stride/2, kGroup, 2]
HWY_INLINE void make_bf16_table(const HeadContext& head, const std::uint16_t* q_pairs, const TermScratch& terms) {
  if (terms.vectors == nullptr) return;
  head.bf16->dot_products(q_pairs, terms.bf16_vectors, head.bf16_stride, terms.labels, terms.table);
  finish_table(head, terms, {0, terms.labels});
}

// Policy of a key block without terms: s = scale m.
struct NoTerm {
  HWY_INLINE FloatVec score(FloatVec dot, FloatVec scale, std::int64_t, int) const { return hn::Mul(dot, scale); }
};

// Policy of a key block with labels.
template <typename OfBlock>
struct LabelTerm {
  const float* table;  // [labels, kGroup]
  OfBlock labels;      // of the key block

  // s of key j and the queries of vector `v`. Most columns have one label for all queries (far keys, whole
  // sentences): one load. The others, near the diagonal and at sentence ends, gather.
  HWY_INLINE FloatVec score(FloatVec dot, FloatVec scale, std::int64_t j, int v) const {
    return hn::MulAdd(dot, scale, look_up(labels, table, labels.code(j), v));
  }
};

// Whether pairs of this key block have a summand to look up.
HWY_INLINE bool has_table(const TermScratch& terms, const KeyBlock& block) {
  return terms.added > 0 && block.tiles->labelled();
}

// Calls body(term) with the policy of the key block's scores: one copy of the loop in `body` for each. The body should
// be forced inline, or what it captures is read from memory for every key.
template <typename Body>
HWY_INLINE void with_term(const TermScratch& terms, const KeyBlock& block, const Body& body) {
  if (!has_table(terms, block)) return body(NoTerm());
  with_labels(
      block, [&](const auto& labels) HWY_ATTR __attribute__((always_inline)) {
        body(LabelTerm<std::decay_t<decltype(labels)>>{terms.table, labels});
      });
}

// Backward, group begins.
HWY_INLINE void clear_term_gradients(const TermScratch& terms, const LabelRange& range) {
  if (terms.added > 0) std::fill_n(terms.dtable + range.begin * kGroup, range.count() * kGroup, 0.0f);
}

// Backward, per key block: dtable[label_ij][i] += ds_ij.   ds [keys, kGroup]
HWY_INLINE void add_term_gradients(const TermScratch& terms, const KeyBlock& block, const float* ds) {
  if (!has_table(terms, block)) return;
  with_labels(
      block, [&](const auto& labels) HWY_ATTR
      __attribute__((always_inline)) { add_by_label(labels, block.keys, ds, terms.dtable); });
}

// Backward, group ends. forward: table = q·rel + rel_bias; so dq += dtable rel, drel += dtable q, dbias += dtable.
//   q_rows, dq [kGroup, stride]
HWY_INLINE void finish_term_gradients(const HeadContext& head, const TermScratch& terms, const LabelRange& range,
                                      const float* q_rows, float* dq) {
  const FloatTag d;
  if (terms.added == 0) return;
  if (terms.vectors != nullptr) {
    const float* const dtable = terms.dtable + range.begin * kGroup;  // [count, kGroup]
    const std::int64_t first = range.begin * head.stride;
    weighted_sum(dtable, terms.vectors + first, head.stride, range.count(), nullptr, dq);
    outer_products(dtable, q_rows, head.stride, range.count(), terms.drel + first);
  }
  for (std::int64_t at = range.begin * kGroup; at < range.end * kGroup; at += kLanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, terms.dbias + at), hn::LoadU(d, terms.dtable + at)), d, terms.dbias + at);
  }
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
