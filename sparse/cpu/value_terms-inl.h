// The term of the values: out_i = sum_j w_ij (v_j + rel_v[label_ij]), w the weights after dropout. There are fewer
// labels than keys, so the weights of a group are summed by label, and one small product multiplies the sums by rel_v:
//   weights[r][i] = sum_{label_ij = r} w_ij        out += weights rel_v        drel_v += weights dout
// Backward, dout_i·rel_v[r] is computed once per group and looked up. Highway's per-target include guard.
#if defined(SPARSE_CPU_VALUE_TERMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_VALUE_TERMS_INL_H_
#undef SPARSE_CPU_VALUE_TERMS_INL_H_
#else
#define SPARSE_CPU_VALUE_TERMS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "sparse/cpu/block_labels-inl.h"
#include "sparse/cpu/group_scratch-inl.h"
#include "sparse/cpu/register_tile-inl.h"
#include "sparse/cpu/score_terms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Start of a group, forward and backward.
HWY_INLINE void clear_label_weights(const TermScratch& terms, const GroupSpan& span) {
  if (terms.value_vectors == nullptr) return;
  std::fill_n(terms.weights + span.labels.begin * kGroup, span.labels.count() * kGroup, 0.0f);
  for (int set = 0; set < kKeySets; ++set) {
    if (terms.by_distance[set].used()) clear_skewed(span.places[set], terms.by_distance[set].weights);
  }
}

HWY_NOINLINE inline void add_weights(const TermScratch& terms, const KeyBlock& block, const float* weights) {
  const DistanceScratch& own = terms.by_distance[block.set];
  if (own.used()) return add_to_places(labels_by_distance(block), block.keys, weights, own.weights);
  add_by_label(listed_labels(block), block.keys, weights, terms.weights);
}

// Per key block.   weights [keys, kGroup]: after dropout
HWY_INLINE void add_label_weights(const TermScratch& terms, const KeyBlock& block, const float* weights) {
  if (HWY_LIKELY(terms.value_vectors == nullptr) || !block.tiles->labelled()) return;
  add_weights(terms, block, weights);
}

// End of a group: adds the weights by place in a list of distances to the weights by label.
HWY_INLINE void fold_weights(const TermScratch& terms, const GroupSpan& span) {
  for (int set = 0; set < kKeySets; ++set) {
    const DistanceScratch& own = terms.by_distance[set];
    if (own.used()) add_skewed(own.weights, own.lanes(), span.places[set], terms.weights);
  }
}

// Forward, end of a group: out += weights rel_v.   out [kGroup, stride]
HWY_NOINLINE inline void add_relative_values(const HeadContext& head, const TermScratch& terms, const GroupSpan& span,
                                             float* out) {
  const LabelRange& range = span.labels;
  if (terms.value_vectors == nullptr) return;
  fold_weights(terms, span);
  weighted_sum(terms.weights + range.begin * kGroup, terms.value_vectors + range.begin * head.stride, head.stride,
               range.count(), nullptr, out);
}

// Backward, start of a group: dout·rel_v of every label.   dout_lanes [D, kGroup]
HWY_NOINLINE inline void make_value_table(const HeadContext& head, const TermScratch& terms, const GroupSpan& span,
                                          const float* dout_lanes) {
  const LabelRange& range = span.labels;
  if (terms.value_vectors == nullptr) return;
  dot_products(dout_lanes, {terms.value_vectors + range.begin * head.stride, head.stride, range.count()},
               head.head_size, terms.value_table + range.begin * kGroup);
  for (int set = 0; set < kKeySets; ++set) {
    const DistanceScratch& own = terms.by_distance[set];
    if (own.used()) skew_rows(terms.value_table, own.lanes(), span.places[set], own.value_table);
  }
}

HWY_NOINLINE inline void add_value_dots_of(const TermScratch& terms, const KeyBlock& block, float* dp) {
  const FloatTag d;
  const DistanceScratch& own = terms.by_distance[block.set];
  const AnyLabels labels = labels_of(block);
  for (std::int64_t j = 0; j < block.keys; ++j) {
    for (int v = 0; v < kGroupVectors; ++v) {
      float* const place = dp + j * kGroup + v * kLanes;  // [kLanes]
      const FloatVec term = own.used()
                                ? hn::LoadU(d, own.value_table + labels.by_distance.place(j) * kGroup + v * kLanes)
                                : look_up(labels.listed, terms.value_table, labels.listed.code(j), v);
      hn::StoreU(hn::Add(hn::LoadU(d, place), term), d, place);
    }
  }
}

// Backward, per key block: turns dout·v into dout·(v + rel_v[label]), in place.   dp [keys, kGroup]
HWY_INLINE void add_value_dots(const TermScratch& terms, const KeyBlock& block, float* dp) {
  if (HWY_LIKELY(terms.value_vectors == nullptr) || !block.tiles->labelled()) return;
  add_value_dots_of(terms, block, dp);
}

// Backward, end of a group: drel_v += weights dout.   dout_rows [kGroup, stride]
HWY_NOINLINE inline void finish_value_gradients(const HeadContext& head, const TermScratch& terms,
                                                const GroupSpan& span, const float* dout_rows) {
  const LabelRange& range = span.labels;
  if (terms.value_vectors == nullptr) return;
  fold_weights(terms, span);
  outer_products(terms.weights + range.begin * kGroup, dout_rows, head.stride, range.count(),
                 terms.drel_v + range.begin * head.stride);
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
