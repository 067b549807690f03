// The forward pass of a group with bf16 operands: products by Bf16Tiles, softmax in fp32 as in group-inl.h, but in one
// pass over the keys. A step of kBf16Keys keys goes through both products while its scores are in the first-level
// cache; its weights are powers relative to a reference that follows the largest logit of the steps before.
// Highway's per-target include guard.
#if defined(SPARSE_CPU_BF16_GROUP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_BF16_GROUP_INL_H_
#undef SPARSE_CPU_BF16_GROUP_INL_H_
#else
#define SPARSE_CPU_BF16_GROUP_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "sparse/cpu/bf16_fill-inl.h"
#include "sparse/cpu/dropout-inl.h"
#include "sparse/cpu/logits-inl.h"
#include "sparse/cpu/pair_terms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 2^(x + 1/2) for -127 <= x < 127, at most 1.1e-4 off, relatively: a twentieth of what rounding to bf16 may cost. Exact
// where x + 1/2 is whole, so that a row with one key gets the weight 1. Subnormal at x = -127, which the threads and
// the tiles take for 0 (smaller x count as -127). x = n + r with |r| <= 1/2; 2^(r + 1/2) by the cubic through its ends
// with the least relative error; n is added to the exponent bits.
HWY_INLINE UintVec bf16_power_bits(FloatVec x) {
  const FloatTag d;
  const UintTag du;
  const FloatVec clamped = hn::Max(x, hn::Set(d, -127.0f));
  // Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low bits.
  const FloatVec magic = hn::Set(d, 12582912.0f);
  const FloatVec shifted = hn::Add(clamped, magic);
  const FloatVec r = hn::Sub(clamped, hn::Sub(shifted, magic));
  FloatVec p = hn::Set(d, 7.8268006e-2f);
  p = hn::MulAdd(p, r, hn::Set(d, 0.34370965f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.9804330f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.4140726f));
  return hn::Add(hn::BitCast(du, p), hn::ShiftLeft<23>(hn::BitCast(du, shifted)));
}

// The softmax of a group over the steps so far, one value per lane.
//   out_columns = sum_j w_ij v_j,  total_i = sum_j w_ij,  w_ij = 2^(logit_ij - reference_i)     logits in base 2
struct RunningSoftmax {
  FloatVec reference[kGroupVectors];  // -inf: no visible key yet
  FloatVec total[kGroupVectors];      // [kGroup]
};

// Weights may grow to 2^kSlack before the reference follows: after the first step of a group it rarely does.
inline constexpr float kSlack = 8.0f;

// Makes the reference fit for a step whose largest logits are `largest`.
HWY_INLINE void follow_largest(const FloatVec* largest, std::int64_t stride, float* out_columns,
                               RunningSoftmax& softmax) {
  const FloatTag d;
  for (int v = 0; v < kGroupVectors; ++v) {
    // A change costs a pass over the sums, 16 queries times D: the slack makes it rare.
    const FloatVec before = softmax.reference[v];
    const FloatMask grown = hn::Gt(largest[v], hn::Add(before, hn::Set(d, kSlack)));
    if (HWY_LIKELY(hn::AllFalse(d, grown))) continue;
    const FloatVec after = hn::IfThenElse(grown, largest[v], before);
    const FloatVec factor = hn::IfThenElse(grown, power_of_two(hn::Sub(before, after)), hn::Set(d, 1.0f));
    softmax.reference[v] = after;
    softmax.total[v] = hn::Mul(softmax.total[v], factor);
    for (std::int64_t c = 0; c < stride; ++c) {
      float* place = out_columns + c * kGroup + v * kLanes;  // [kLanes]: component c
      hn::StoreU(hn::Mul(hn::LoadU(d, place), factor), d, place);
    }
  }
}

// A pair of weights where dropout keeps them, else 0.   keep [2]: bits of both keys
HWY_INLINE UintVec kept_pair(UintVec pair, const std::uint16_t* keep, int v) {
  const UintTag du;
  const UintVec first = hn::IfThenElseZero(hn::RebindMask(du, lanes_of(keep[0], v)), hn::Set(du, 0x0000FFFFu));
  const UintVec second = hn::IfThenElseZero(hn::RebindMask(du, lanes_of(keep[1], v)), hn::Set(du, 0xFFFF0000u));
  return hn::And(pair, hn::Or(first, second));
}

// Columns of a step's logits, `lead` before them up to the tiles' alignment.
struct StepColumns {
  float* logits;              // [keys, kGroup]
  const std::uint16_t* keep;  // [keys]: bits of the pairs that dropout keeps
  std::int64_t keys, lead;
};

// Weights of a step as pairs, behind `lead` zero ones and before as many as `alignment` asks for. Half pairs at the ends
// are filled with a hidden column: there must be room for one before and one behind logits and keep. The sum takes the
// weights before dropout.
template <bool kDropout>
HWY_INLINE void bf16_weights(const StepColumns& columns, std::int64_t alignment, RunningSoftmax& softmax,
                             std::uint16_t* w_pairs) {
  auto [logits, keep, keys, lead] = columns;
  const FloatTag d;
  const UintTag du;
  const float hidden = -std::numeric_limits<float>::infinity();
  if (lead % 2 != 0) {
    logits -= kGroup;
    std::fill_n(logits, kGroup, hidden);
    --lead, ++keys, --keep;
  }
  if (keys % 2 != 0) std::fill_n(logits + keys++ * kGroup, kGroup, hidden);
  auto* to = reinterpret_cast<std::uint32_t*>(w_pairs);
  std::fill_n(to, lead / 2 * kGroup, 0u);
  to += lead / 2 * kGroup;
  // Rounding half away from zero is as good for weights as half to even.
  const UintVec half = hn::Set(du, 0x8000u), upper = hn::Set(du, 0xFFFF0000u);
  const FloatVec none = hn::Set(d, hidden);
  for (int v = 0; v < kGroupVectors; ++v) {
    // A row without a visible key so far subtracts 1/2, so that -inf stays -inf and becomes 0.
    const FloatVec reference = softmax.reference[v];
    const FloatVec shift = hn::Add(hn::IfThenZeroElse(hn::Eq(reference, none), reference), hn::Set(d, 0.5f));
    FloatVec sum = softmax.total[v];
    const float* from = logits + v * kLanes;  // [keys, kLanes], columns kGroup apart
    for (std::int64_t j = 0; j < keys; j += 2, from += 2 * kGroup) {
      const UintVec first = bf16_power_bits(hn::Sub(hn::LoadU(d, from), shift));
      const UintVec second = bf16_power_bits(hn::Sub(hn::LoadU(d, from + kGroup), shift));
      sum = hn::Add(sum, hn::Add(hn::BitCast(d, first), hn::BitCast(d, second)));
      UintVec pair = hn::OrAnd(hn::ShiftRight<16>(hn::Add(first, half)), hn::Add(second, half), upper);
      if constexpr (kDropout) pair = kept_pair(pair, keep + j, v);
      hn::StoreU(pair, du, to + j / 2 * kGroup + v * kLanes);
    }
    softmax.total[v] = sum;
  }
  // Zero weights fill the last tile: the values behind them are numbers, but of other keys.
  to += keys / 2 * kGroup;
  const std::int64_t rest = round_up(lead + keys, alignment) - lead - keys;
  std::fill_n(to, rest / 2 * kGroup, 0u);
}

// What joins q·k before the loop of the logits; in bf16 there are no keys of the tables (compute_of).
HWY_INLINE void join_bf16_pairs(const KeyBlock& block, const TermScratch& terms, bool scored, float* dots) {
  if (HWY_LIKELY(!terms.joined[block.set]) || (!scored && terms.late[block.set])) return;
  if (terms.dots != nullptr) std::copy_n(dots, block.keys * kGroup, terms.dots);  // backward
  if (terms.by_distance[block.set].used()) return join_by_distance(terms, block, block.keys, dots);
  apply_factors(terms.factors, labels_of(block), block.keys, dots);
}

// m of a key block, without what the loop of the logits adds: the same bits in forward and backward, since a row's
// products do not depend on its neighbours.   scored: its type carries scores; s [keys in whole tiles, kGroup]
HWY_INLINE void bf16_dots(const HeadContext& head, const KeyBlock& block, bool scored, const GroupScratch& scratch,
                          float* s) {
  multiply_rows(head, block, block.panel->bf16().k_rows, scratch.bf16.q_pairs, s);
  join_bf16_pairs(block, scratch.terms, scored, s);
}

// One step: at most kBf16Keys keys of a key block.
HWY_INLINE void bf16_step(const HeadContext& head, const KeyBlock& block, std::int64_t first_query,
                          const TypeScores& scores, const GroupScratch& scratch, RunningSoftmax& softmax) {
  const Bf16Scratch& own = scratch.bf16;
  const Bf16Panel& panel = block.panel->bf16();
  // One column in front is left for bf16_weights to fill an odd half pair.
  float* const logits = scratch.p + kGroup;      // [keys, kGroup]
  std::uint16_t* const keep = scratch.keep + 1;  // [keys]
  require_bf16(head, *block.panel, block.row + block.keys, own);
  if (scores.mode != ScoreMode::read) bf16_dots(head, block, scores.mode != ScoreMode::none, scratch, logits);
  // Begins at the reference: only larger logits matter.
  FloatVec largest[kGroupVectors];  // [kGroup]
  for (int v = 0; v < kGroupVectors; ++v) largest[v] = softmax.reference[v];
  logits_of_block(head, block, scores, scratch.terms, logits, largest);
  follow_largest(largest, head.stride, own.out_columns, softmax);
  // Values are read in whole tiles from whole lines of the cache.
  const std::int64_t alignment = head.bf16->key_alignment, lead = block.row % alignment;
  const StepColumns columns{logits, keep, block.keys, lead};
  if (head.dropout) {
    keep_bits_of_block(head, block, first_query, keep);
    bf16_weights<true>(columns, alignment, softmax, own.w_pairs);
  } else {
    bf16_weights<false>(columns, alignment, softmax, own.w_pairs);
  }
  head.bf16->weighted_sum(own.w_pairs, panel.v_columns + block.row - lead, panel.column_stride, lead + block.keys,
                          head.stride, own.out_columns);
}

// As forward_group; asks for the rows `ahead` meanwhile. result.max is the reference of the sums rather than the largest
// logit itself (-inf: no visible key).
HWY_INLINE void bf16_forward_group(const HeadContext& head, const TypeScores* scores, const SeenBlocks& seen,
                                   RowsAhead& ahead, const GroupScratch& scratch, GroupSoftmax& result) {
  const auto [first_query, blocks, count] = seen;
  const FloatTag d;
  const Bf16Scratch& own = scratch.bf16;
  const bool all_read = scores[0].mode == ScoreMode::read && scores[1].mode == ScoreMode::read;
  if (!all_read) make_bf16_table(head, own.q_pairs, scratch.terms, span_of_group(scratch.terms, seen));
  RunningSoftmax softmax;
  for (int v = 0; v < kGroupVectors; ++v) {
    softmax.reference[v] = hn::Set(d, -std::numeric_limits<float>::infinity());
    softmax.total[v] = hn::Zero(d);
  }
  // Components in rows, queries in lanes: as the tiles leave them, and as follow_largest scales them.
  std::fill_n(own.out_columns, head.stride * kGroup, 0.0f);
  std::int64_t columns = 0;
  for (std::int64_t n = 0; n < count; ++n) columns += blocks[n].keys;
  // Rows asked for evenly over the group's steps.
  const std::int64_t share = ahead.rows() * kBf16Keys / std::max(columns, kBf16Keys) + 1;  // of a step
  for (std::int64_t n = 0; n < count; ++n) {
    const KeyBlock& block = blocks[n];
    const TypeScores& type_scores = scores[block.set];
    // Running scores lie in the order they are read in: the hardware fetches them ahead.
    for (std::int64_t j = 0; j < block.keys;) {
      // A key block of the walk is a whole run; here it is cut into steps.
      KeyBlock step = block.from(j);
      // Steps end where values are read in whole tiles.
      step.keys = std::min(kBf16Keys - step.row % head.bf16->key_alignment, block.keys - j);
      ahead.ask(share);
      bf16_step(head, step, first_query, type_scores, scratch, softmax);
      j += step.keys;
    }
  }
  // The output's rows are queries again.
  for (std::int64_t c = 0; c < head.stride; c += kGroup) {
    transpose_block(own.out_columns + c * kGroup, kGroup, scratch.out + c, head.stride);
  }
  for (int v = 0; v < kGroupVectors; ++v) {
    result.max[v] = softmax.reference[v];
    result.sum[v] = softmax.total[v];
  }
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
