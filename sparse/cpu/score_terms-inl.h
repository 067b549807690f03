// The terms of a score that depend on query and label alone: q·rel[label] and rel_bias[label], forward and backward.
// Terms that need query and key of each pair are in pair_terms-inl.h, those of the values in value_terms-inl.h.
//
//   s_ij = scale (m_ij + q_i·rel[label_ij] + rel_bias[label_ij])        m_ij: q_i·k_j and the pair terms
//
// There are fewer labels than keys, so the relative part of every label is computed once per group, and each pair looks
// it up by label:
//   table[r][i] = scale (q_i·rel[r] + rel_bias[r])      s_ij = scale m_ij + table[label_ij][i]
// Backward is the transposed operation: dtable[r][i] sums the gradients of the pairs with label r; at the group's end
// one small product adds dtable's contributions to dq and to the tables' gradients.
//
// For listed labels the term is a compile-time policy of the tile loop, selected per key block (with_term): a key block
// without labels runs a loop without the term. For labels by distance the term is a policy only in types without
// running scores (DistanceTerm, DistanceKeyTerm). With running scores, or with other parts of m, a separate pass over
// the key block adds it to m first (pair_terms-inl.h), which needs fewer copies of the loops.
// Highway's per-target include guard.
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

// Labels [begin, end), in whole steps.
struct LabelRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t count() const { return end - begin; }
};

// The labels that a group may look up, and the places of its columns in the lists of distances.
struct GroupSpan {
  LabelRange labels;
  PlaceRange places[kKeySets];
};

// The labels of a range of places.
HWY_INLINE LabelRange labels_of_places(const DistanceScratch& own, const PlaceRange& range) {
  const IntTag di;
  const std::int32_t* const lanes = own.lanes();
  auto least = hn::LoadU(di, lanes + range.begin), most = least;
  for (std::int64_t n = range.begin; n < range.end + kSkew; n += kLanes) {
    const auto labels = hn::LoadU(di, lanes + std::min(n, range.end + kSkew - kLanes));
    least = hn::Min(least, labels);
    most = hn::Max(most, labels);
  }
  return {hn::GetLane(hn::MinOfLanes(di, least)), hn::GetLane(hn::MaxOfLanes(di, most)) + 1};
}

// With unclipped distances a group sees about half of the rows, and only these are multiplied.
inline GroupSpan span_of_group(const TermScratch& terms, const SeenBlocks& seen) {
  GroupSpan span{{0, terms.labels}, {}};
  if (!terms.skewed()) return span;
  for (std::int64_t n = 0; n < seen.count; ++n) {
    const KeyBlock& block = seen.blocks[n];
    if (!terms.by_distance[block.set].used()) continue;
    const LabelsByDistance labels = labels_by_distance(block);
    PlaceRange& places = span.places[block.set];
    const std::int64_t begin = labels.place(block.keys - 1), end = labels.place(0) + 1;
    places =
        places.end == 0 ? PlaceRange{begin, end} : PlaceRange{std::min(places.begin, begin), std::max(places.end, end)};
  }
  // With few labels most of them are seen: use all.
  if (terms.listed || terms.labels <= 2 * kGroup) return span;
  std::int64_t least = terms.labels, most = 0;
  for (int set = 0; set < kKeySets; ++set) {
    if (span.places[set].end == 0) continue;
    const LabelRange labels = labels_of_places(terms.by_distance[set], span.places[set]);
    least = std::min(least, labels.begin);
    most = std::max(most, labels.end);
  }
  span.labels = {std::min(least / kRunStep * kRunStep, most), std::min(terms.labels, round_up(most, kRunStep))};
  return span;
}

// Labels by distance: table = table + rel_bias, where `table` holds q·rel, then skewed.
HWY_NOINLINE inline void finish_distance_tables(const TermScratch& terms, const GroupSpan& span) {
  const FloatTag d;
  for (std::int64_t r = span.labels.begin; terms.biased && r < span.labels.end; ++r) {
    const FloatVec bias = hn::Set(d, terms.biases[r]);
    for (int v = 0; v < kGroupVectors; ++v) {
      float* place = terms.table + r * kGroup + v * kLanes;  // [kLanes]
      hn::StoreU(hn::Add(hn::LoadU(d, place), bias), d, place);
    }
  }
  for (int set = 0; set < kKeySets; ++set) {
    const DistanceScratch& own = terms.by_distance[set];
    if (own.table != nullptr) skew_rows(terms.table, own.lanes(), span.places[set], own.table);
  }
}

// Listed labels: table = scale (table + rel_bias), where `table` holds q·rel. Labels by distance are part of m, before
// the scale.
HWY_INLINE void finish_table(const HeadContext& head, const TermScratch& terms, const GroupSpan& span) {
  const FloatTag d;
  const bool skewed = terms.skewed();
  if (skewed) finish_distance_tables(terms, span);
  if (!terms.listed) return;
  const FloatVec scale = hn::Set(d, head.scale);
  for (std::int64_t r = span.labels.begin; r < span.labels.end; ++r) {
    const FloatVec bias = hn::Set(d, skewed ? 0.0f : terms.biases[r]);
    for (int v = 0; v < kGroupVectors; ++v) {
      float* place = terms.table + r * kGroup + v * kLanes;  // [kLanes]
      hn::StoreU(hn::Mul(hn::Add(hn::LoadU(d, place), bias), scale), d, place);
    }
  }
}

// One head's tables in the order of a list of distances.
inline void load_distance_tables(const TermScratch& terms, const DistanceScratch& own, std::int64_t head_size,
                                 std::int64_t stride) {
  const std::int32_t* const lanes = own.lanes();
  for (std::int64_t n = 0; own.factors != nullptr && n < own.places + kSkew; ++n)
    own.factors[n] = terms.factors[lanes[n]];
  for (std::int64_t n = 0; n < own.key_places; ++n) {
    float* const row = own.key_vectors + n * stride;  // [stride]
    if (n < own.places + kSkew) {
      std::copy_n(terms.key_vectors + lanes[n] * stride, stride, row);
    } else {
      std::fill_n(row, stride, 0.0f);
    }
    for (std::int64_t c = 0; c < head_size; ++c) own.key_columns[c * own.key_places + n] = row[c];
  }
}

// Start of a task: makes one head's tables contiguous. With biases alone the table is the same for every group and is
// computed here, once.
inline void load_terms(const AttentionInputs& in, std::int64_t head_index, const HeadContext& head,
                       const TermScratch& terms) {
  const RelativeTable& given = in.relative;
  load_table_rows(in, given.vectors, head_index, head, terms.labels, terms.vectors);
  load_table_rows(in, given.key_vectors, head_index, head, terms.labels, terms.key_vectors);
  load_table_rows(in, given.products, head_index, head, terms.labels, terms.products);
  load_table_rows(in, given.value_vectors, head_index, head, terms.labels, terms.value_vectors);
  if (given.factors != nullptr) load_table_numbers(in, given.factors, head_index, terms.labels, terms.factors);
  for (const DistanceScratch& own : terms.by_distance) {
    if (own.used()) load_distance_tables(terms, own, head.head_size, head.stride);
  }
  if (terms.added == 0) return;
  load_table_numbers(in, given.biases, head_index, terms.labels, terms.biases);
  if (given.vectors == nullptr) {
    std::fill_n(terms.table, terms.labels * kGroup, 0.0f);
    return finish_table(head, terms, {{0, terms.labels}, {terms.by_distance[0].all(), terms.by_distance[1].all()}});
  }
  for (std::int64_t r = 0; head.bf16 != nullptr && r < terms.labels; ++r) {
    head.bf16->round_row(terms.vectors + r * head.stride, head.stride, head.bf16_stride,
                         terms.bf16_vectors + r * head.bf16_stride);
  }
}

// Group begins: its table.   q_lanes [D, kGroup]
HWY_INLINE void make_table(const HeadContext& head, const float* q_lanes, const TermScratch& terms,
                           const GroupSpan& span) {
  const LabelRange& range = span.labels;
  if (terms.vectors == nullptr) return;
  dot_products(q_lanes, {terms.vectors + range.begin * head.stride, head.stride, range.count()}, head.head_size,
               terms.table + range.begin * kGroup);
  finish_table(head, terms, span);
}

// The same with rounded operands.   q_pairs [bf16_stride/2, kGroup, 2]
HWY_INLINE void make_bf16_table(const HeadContext& head, const std::uint16_t* q_pairs, const TermScratch& terms,
                                GroupSpan span) {
  if (terms.vectors == nullptr) return;
  head.bf16->dot_products(q_pairs, terms.bf16_vectors, head.bf16_stride, terms.labels, terms.table);
  span.labels = {0, terms.labels};
  finish_table(head, terms, span);
}

// Policy of a key block without terms: s = scale m.
struct NoTerm {
  HWY_INLINE FloatVec score(FloatVec dot, FloatVec scale, std::int64_t, int) const { return hn::Mul(dot, scale); }
};

// Policy of a key block with listed labels.
struct LabelTerm {
  const float* table;   // [labels, kGroup]
  ListedLabels labels;  // of the key block

  // s of key j for the queries of vector `v`. Most columns have one label for all queries (far keys, whole sentences)
  // and need one load. The others, near the diagonal and at sentence ends, need a gather.
  HWY_INLINE FloatVec score(FloatVec dot, FloatVec scale, std::int64_t j, int v) const {
    return hn::MulAdd(dot, scale, look_up(labels, table, labels.code(j), v));
  }
};

// Policy of a key block with labels by distance, for types without running scores (with scores there would be too many
// copies of the loop).
struct DistanceTerm {
  const float* rows;        // skewed
  LabelsByDistance labels;  // of the key block

  HWY_INLINE FloatVec score(FloatVec dot, FloatVec scale, std::int64_t j, int v) const {
    const FloatVec own = hn::LoadU(FloatTag(), rows + labels.place(j) * kGroup + v * kLanes);
    return hn::Mul(hn::Add(dot, own), scale);
  }
};

// The same with k·rel_k; every key has a row of products with all places (multiply_keys).
struct DistanceKeyTerm {
  const float* rows;        // skewed
  const float* products;    // [keys, key_places]
  std::int64_t key_places;  // of a row
  LabelsByDistance labels;  // of the key block

  HWY_INLINE FloatVec score(FloatVec dot, FloatVec scale, std::int64_t j, int v) const {
    const FloatTag d;
    const std::int64_t place = labels.place(j);
    const FloatVec of_query = hn::LoadU(d, rows + place * kGroup + v * kLanes);
    const FloatVec of_key = hn::LoadU(d, products + j * key_places + place + v * kLanes);
    return hn::Mul(hn::Add(hn::Add(dot, of_query), of_key), scale);
  }
};

// Calls body(term) with the policy of a key block whose type is `late`.
template <typename Body>
HWY_INLINE void with_late_term(const TermScratch& terms, const KeyBlock& block, const Body& body) {
  const DistanceScratch& own = terms.by_distance[block.set];
  const LabelsByDistance labels = labels_by_distance(block);
  if (own.key_places == 0) return body(DistanceTerm{own.table, labels});
  body(DistanceKeyTerm{own.table, block.panel->products(block.row, own.key_places), own.key_places, labels});
}

// Whether pairs of this key block look up a term in the logit loop.
HWY_INLINE bool has_table(const TermScratch& terms, const KeyBlock& block) {
  return terms.added > 0 && block.tiles->relative;
}

// Calls body(term) with the policy of the key block's scores; each policy has its own copy of the loop in `body`. The
// body should be always_inline, otherwise its captures are read from memory for every key.
template <typename Body>
HWY_INLINE void with_term(const TermScratch& terms, const KeyBlock& block, const Body& body) {
  if (!has_table(terms, block)) return body(NoTerm());
  body(LabelTerm{terms.table, listed_labels(block)});
}

// The same, including the policy of labels by distance where the key block's type carries no scores.
template <typename Body>
HWY_INLINE void with_any_term(const TermScratch& terms, const KeyBlock& block, bool unscored, const Body& body) {
  if (unscored && terms.late[block.set]) return with_late_term(terms, block, body);
  with_term(terms, block, body);
}

// Backward, start of a group.
HWY_INLINE void clear_term_gradients(const TermScratch& terms, const GroupSpan& span) {
  if (terms.added == 0) return;
  std::fill_n(terms.dtable + span.labels.begin * kGroup, span.labels.count() * kGroup, 0.0f);
  for (int set = 0; set < kKeySets; ++set) {
    if (terms.by_distance[set].used()) clear_skewed(span.places[set], terms.by_distance[set].dtable);
  }
}

// Backward, per key block: dtable[label_ij][i] += ds_ij.   ds [keys, kGroup]
HWY_INLINE void add_term_gradients(const TermScratch& terms, const KeyBlock& block, const float* ds) {
  if (has_table(terms, block)) add_by_label(listed_labels(block), block.keys, ds, terms.dtable);
}

// Backward, end of a group. Forward: table = q·rel + rel_bias; so dq += dtable rel, drel += dtable q, dbias += dtable.
//   q_rows, dq [kGroup, stride]
HWY_INLINE void finish_term_gradients(const HeadContext& head, const TermScratch& terms, const GroupSpan& span,
                                      const float* q_rows, float* dq) {
  const FloatTag d;
  const LabelRange& range = span.labels;
  if (terms.added == 0) return;
  for (int set = 0; set < kKeySets; ++set) {
    const DistanceScratch& own = terms.by_distance[set];
    if (own.used()) add_skewed(own.dtable, own.lanes(), span.places[set], terms.dtable);
  }
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
