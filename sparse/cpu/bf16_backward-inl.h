// The products of backward with bf16 operands and fp32 sums. Probabilities, gradients of scores and the tables' sums
// stay fp32 as in group-inl.h. Per step of at most kBf16Keys keys, which ends at a multiple of the tiles' alignment:
//
//   s  [keys, 16] = K · q_pairs        dp [keys, 16] = V · dout_pairs        contracted over components
//   dq [stride, 16] += K by columns · pairs of keys of ds                    over keys
//   dk [keys, stride] += ds · pairs of queries of q,  dv += p · those of dout    over queries
//
// Highway's per-target include guard.
#if defined(SPARSE_CPU_BF16_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_BF16_BACKWARD_INL_H_
#undef SPARSE_CPU_BF16_BACKWARD_INL_H_
#else
#define SPARSE_CPU_BF16_BACKWARD_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "sparse/cpu/bf16_fill-inl.h"
#include "sparse/cpu/group_scratch-inl.h"
#include "sparse/cpu/pair_terms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {

// Builds a group's operands of all products from the rows already copied.
HWY_INLINE void pair_backward_group(const HeadContext& head, const GroupScratch& scratch) {
  const Bf16Scratch& own = scratch.bf16;
  // The rows contain this head only, from column 0 on.
  const auto turn = [&](const float* rows, std::uint16_t* of_components, std::uint16_t* of_queries) HWY_ATTR {
    round_group(head, rows, own.rows);
    pair_components(head, own.rows, of_components);
    pair_queries(head, rows, of_queries);
  };
  turn(scratch.q_rows, own.q_pairs, own.q_of_queries);
  turn(scratch.dout_rows, own.dout_pairs, own.dout_of_queries);
  std::fill_n(own.out_columns, head.stride * kGroup, 0.0f);
  head.bf16->open_sums(head.stride, own.out_columns);
}

// Rounds the columns of a key block as rows, and adds zeros up to a whole tile and one row.   w [keys, kGroup]
HWY_INLINE void round_columns(const HeadContext& head, const float* w, std::int64_t keys, std::uint16_t* to) {
  const std::int64_t size = keys * kGroup, rounded = round_up(size, kTilePairs);
  head.bf16->round_row(w, size, rounded, to);
  const std::int64_t end = (round_up(keys, kTileRows16) + 1) * kGroup;
  std::fill(to + rounded, to + end, std::uint16_t{0});
}

// Rounds the columns of a key block as pairs of consecutive keys, with `lead` zero keys before and zeros up to the next
// multiple of the alignment.
//   w [keys, kGroup]
HWY_INLINE void pair_columns(const HeadContext& head, const float* w, std::int64_t keys, std::int64_t lead,
                             std::uint16_t* to) {
  const auto column = [&](std::int64_t j) { return j >= 0 && j < keys ? w + j * kGroup : nullptr; };
  const std::int64_t end = round_up(lead + keys, head.bf16->key_alignment);
  for (std::int64_t j = 0; j < end; j += 2) {
    head.bf16->round_pairs(column(j - lead), column(j + 1 - lead), kGroup, kGroup, to + j * kGroup);
  }
}

// Backward of the pair terms of m: adds a key block's gradients of the tables, and turns g = scale·dC into the gradient
// of q·k. carried: q·k was not computed for this block.   g [keys, kGroup]
HWY_NOINLINE inline void bf16_join_gradients(const HeadContext& head, const KeyBlock& block,
                                             const GroupScratch& scratch, bool carried, float* g) {
  const TermScratch& terms = scratch.terms;
  if (carried && terms.factors != nullptr) {
    multiply_rows(head, block, block.panel->bf16().k_rows, scratch.bf16.q_pairs, terms.dots);
  }
  join_gradients(terms, block, g);
}

// Rounds the left and right operands of a key block's gradient products.
//   scratch.p, scratch.ds [keys, kGroup]: probabilities after dropout and scale·dC
HWY_INLINE void round_gradients(const HeadContext& head, const KeyBlock& block, const GroupScratch& scratch,
                                bool carried) {
  const Bf16Weights& own = scratch.bf16.weights[0];
  if (HWY_UNLIKELY(scratch.terms.joined[block.set])) bf16_join_gradients(head, block, scratch, carried, scratch.ds);
  pair_columns(head, scratch.ds, block.keys, lead_of(head, block), own.pairs);
  round_columns(head, scratch.ds, block.keys, own.gradient_rows);
  round_columns(head, scratch.p, block.keys, own.probability_rows);
}

// Adds dq, dk and dv of a key block, from the operands of round_gradients.
HWY_INLINE void multiply_gradients(const HeadContext& head, const KeyBlock& block, const Bf16Scratch& own) {
  const Bf16Weights& weights = own.weights[0];
  const Bf16Panel& panel = block.panel->bf16();
  const std::int64_t lead = lead_of(head, block), keys = block.keys, stride = head.stride;
  head.bf16->weighted_sum(weights.pairs, panel.k_columns + block.row - lead, panel.column_stride, lead + keys, stride,
                          own.out_columns);
  head.bf16->outer_products(weights.gradient_rows, own.q_of_queries, stride, keys, block.panel->dk(block.row));
  head.bf16->outer_products(weights.probability_rows, own.dout_of_queries, stride, keys, block.panel->dv(block.row));
}

// Writes dq of a group as rows.   scratch.out [kGroup, stride]
HWY_INLINE void bf16_finish_group(const HeadContext& head, const GroupScratch& scratch) {
  head.bf16->close_sums(head.stride, scratch.bf16.out_columns);
  for (std::int64_t c = 0; c < head.stride; c += kGroup) {
    transpose_block(scratch.bf16.out_columns + c * kGroup, kGroup, scratch.out + c, head.stride);
  }
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
