// The forward pass of a group with bf16 operands: products by Bf16Tiles, softmax in fp32 as in group-inl.h, but as an
// online softmax in one pass over the keys, kBf16Keys per step. Weights are powers of two relative to a reference,
// which is raised when logits grow. Steps overlap, so that the tile unit and the vector units work at the same time:
//   tiles    q·k 0 |         q·k 1 | w·v 0   q·k 2 | w·v 1   q·k 3 | ...
//   vectors        | softmax 0     | softmax 1     | softmax 2     | ...
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
#include <utility>

#include "sparse/cpu/bf16_fill-inl.h"
#include "sparse/cpu/bf16_interleave.h"
#include "sparse/cpu/bf16_weights-inl.h"
#include "sparse/cpu/dropout-inl.h"
#include "sparse/cpu/logits-inl.h"
#include "sparse/cpu/pair_terms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The softmax of a group over the steps so far, one value per lane.
//   out_columns = sum_j w_ij v_j,  total_i = sum_j w_ij,  w_ij = 2^(logit_ij - reference_i)     logits in base 2
struct RunningSoftmax {
  FloatVec reference[kGroupVectors];  // -inf: no visible key yet
  FloatVec total[kGroupVectors];      // [kGroup]
  bool begun = false;                 // whether a step has set the reference
};

// Weights may grow to 2^kSlack before the reference is raised, which is rare after the first step of a group. Where the
// largest logit is not known, the sum of a step's weights is compared with that of kBf16Keys such weights.
inline constexpr float kSlack = 8.0f;
inline constexpr float kLargestStepSum = 0x1p8f * static_cast<float>(kBf16Keys);

// The queries of vector v whose weights would exceed 2^kSlack.
HWY_INLINE FloatMask outgrown(const FloatVec* largest, const RunningSoftmax& softmax, int v) {
  return hn::Gt(largest[v], hn::Add(softmax.reference[v], hn::Set(FloatTag(), kSlack)));
}
HWY_INLINE bool any_outgrown(const FloatVec* largest, const RunningSoftmax& softmax) {
  bool any = false;
  for (int v = 0; v < kGroupVectors; ++v) any |= !hn::AllFalse(FloatTag(), outgrown(largest, softmax, v));
  return any;
}

// Raises the reference for a step whose largest logits are `largest`. This costs a pass over the sums, 16 queries times
// D; the slack makes it rare.
HWY_NOINLINE inline void follow_largest(const HeadContext& head, const FloatVec* largest, float* out_columns,
                                        RunningSoftmax& softmax) {
  const FloatTag d;
  if (!softmax.begun) {  // sums are 0
    for (int v = 0; v < kGroupVectors; ++v) softmax.reference[v] = largest[v];
    return;
  }
  head.bf16->close_sums(head.stride, out_columns);
  for (int v = 0; v < kGroupVectors; ++v) {
    const FloatVec before = softmax.reference[v];
    const FloatMask grown = outgrown(largest, softmax, v);
    const FloatVec after = hn::IfThenElse(grown, largest[v], before);
    const FloatVec factor = hn::IfThenElse(grown, power_of_two(hn::Sub(before, after)), hn::Set(d, 1.0f));
    softmax.reference[v] = after;
    softmax.total[v] = hn::Mul(softmax.total[v], factor);
    for (std::int64_t c = 0; c < head.stride; ++c) {
      float* place = out_columns + c * kGroup + v * kLanes;  // [kLanes]: component c
      hn::StoreU(hn::Mul(hn::LoadU(d, place), factor), d, place);
    }
  }
  head.bf16->open_sums(head.stride, out_columns);
}

// The queries of vector v that have not seen a key so far.
HWY_INLINE FloatMask none_seen(const RunningSoftmax& softmax, int v) {
  return hn::Eq(softmax.reference[v], hn::Set(FloatTag(), -std::numeric_limits<float>::infinity()));
}

// The number subtracted from logits. A row without a visible key so far subtracts 0, so that -inf stays -inf.
HWY_INLINE FloatVec shift_of(const RunningSoftmax& softmax, int v) {
  return hn::IfThenZeroElse(none_seen(softmax, v), softmax.reference[v]);
}

// One step of a group: at most kBf16Keys keys of a key block.
struct Bf16Step {
  KeyBlock block;
  float* logits;           // [keys, kGroup]; one column before and one tile after may be overwritten
  std::uint16_t* w_pairs;  // [kBf16Keys/2, kGroup, 2]
  // Products of the steps before and after, to be issued during this step's softmax.
  InterleavedOperands operands = {};
  InterleavedProducts products = {};
};

// The pairs of a step's weights, padded with zero weights: `lead` keys before the step, and after it up to the
// alignment (the values there are finite, but belong to other keys).
struct StepPairs {
  std::int64_t lead, keys, alignment;
  std::uint16_t* pairs;  // [kBf16Keys/2, kGroup, 2]

  // The pair of the step's first key.
  HWY_INLINE std::uint32_t* begin() const { return reinterpret_cast<std::uint32_t*>(pairs) + lead / 2 * kGroup; }
  HWY_INLINE void clear_ends() const {
    auto* const to = reinterpret_cast<std::uint32_t*>(pairs);
    const std::int64_t end = (lead + keys + 1) / 2, last = round_up(lead + keys, alignment) / 2;
    std::fill_n(to, lead / 2 * kGroup, 0u);
    std::fill_n(to + end * kGroup, (last - end) * kGroup, 0u);
  }
};

// Calls body(j) for every second key, and issues a part of the products before every fourth.
template <typename Body>
HWY_INLINE void for_parts(std::int64_t keys, InterleavedProducts& products, const Body& body) {
  for (std::int64_t part = 0; part < keys; part += 4) {
    products.issue();
    const std::int64_t end = std::min(part + 4, keys);
    for (std::int64_t j = part; j < end; j += 2) body(j);
  }
}

// Weights of a step from its logits [keys, kGroup]. Half pairs at the ends are completed with a masked column, so there
// must be room for one column before and one after the logits.
HWY_INLINE void weights_of_logits(const StepPairs& step, float* logits, InterleavedProducts& products,
                                  RunningSoftmax& softmax) {
  const FloatTag d;
  std::int64_t keys = step.keys;
  const float hidden = -std::numeric_limits<float>::infinity();
  if (step.lead % 2 != 0) {
    logits -= kGroup;
    std::fill_n(logits, kGroup, hidden);
    ++keys;
  }
  if (keys % 2 != 0) std::fill_n(logits + keys++ * kGroup, kGroup, hidden);
  for (int v = 0; v < kGroupVectors; ++v) {
    const FloatVec shift = shift_of(softmax, v);
    FloatVec sum = softmax.total[v];
    const float* from = logits + v * kLanes;  // [keys, kLanes], columns kGroup apart
    const FloatMask all = hn::FirstN(d, kLanes);
    const auto weight = [&](const float* column)
                            HWY_ATTR { return bf16_power_bits(all, hn::Sub(hn::LoadU(d, column), shift)); };
    for_parts(keys, products, [&](std::int64_t j) HWY_ATTR {
      const UintVec pair = join_weights(weight(from + j * kGroup), weight(from + (j + 1) * kGroup), sum);
      hn::StoreU(pair, UintTag(), step.begin() + j / 2 * kGroup + v * kLanes);
    });
    softmax.total[v] = sum;
  }
}

#if HWY_TARGET <= HWY_AVX3
// Whether all queries see all keys of a whole step.   visible [kBf16Keys]
HWY_INLINE bool all_visible(const std::uint16_t* visible) {
  return _mm512_cmpneq_epi16_mask(_mm512_loadu_si512(visible), _mm512_set1_epi32(-1)) == 0;
}
static_assert(kBf16Keys * sizeof(std::uint16_t) == 64);

// The weights of a step's whole pairs of keys directly from m, relative to the current reference, for a type without C
// in an operator whose scores are logits (HeadContext::use_base_2). Returns whether the reference must be raised
// first; m stays. kAll: all queries see all keys.
template <bool kAll, typename Term>
HWY_INLINE bool weigh_columns(const HeadContext& head, Bf16Step& step, const Term& term, std::uint32_t* to,
                              RunningSoftmax& softmax) {
  const FloatTag d;
  const std::uint16_t* const visible = step.block.tiles->visible.data() + step.block.column;  // [keys]
  const float* const dots = step.logits;                                                      // [keys, kGroup]
  const FloatVec scale = hn::Set(d, head.scale), shift = shift_of(softmax, 0), before = softmax.total[0];
  FloatVec sum = before;
  const auto weight = [&](std::int64_t j) HWY_ATTR __attribute__((always_inline)) {
    const FloatMask seen = kAll ? hn::FirstN(d, kLanes) : lanes_of(visible[j], 0);
    return bf16_power_bits(seen, hn::Sub(term.score(hn::LoadU(d, dots + j * kGroup), scale, j, 0), shift));
  };
  for_parts(
      step.block.keys, step.products, [&](std::int64_t j) HWY_ATTR __attribute__((always_inline)) {
        const UintVec first = weight(j), second = weight(j + 1);
        hn::StoreU(join_weights(first, second, sum), UintTag(), to + j / 2 * kGroup);
      });
  if (HWY_UNLIKELY(!hn::AllFalse(d, hn::Gt(hn::Sub(sum, before), hn::Set(d, kLargestStepSum))))) return true;
  softmax.total[0] = sum;
  return false;
}
static_assert(kGroupVectors == 1);

// The weights of a step by weigh_columns if that can be done. Returns whether it was.
HWY_INLINE bool weigh_step_directly(const HeadContext& head, Bf16Step& step, const TypeScores& scores,
                                    const StepPairs& pairs, const GroupScratch& scratch, RunningSoftmax& softmax) {
  const bool scores_are_logits = head.logit_unit == 1.0f && scores.mode == ScoreMode::none;
  if (!scores_are_logits || pairs.lead % 2 != 0 || pairs.keys % 2 != 0) return false;
  // The first key that a query sees sets its reference, however small its logit is.
  if (!softmax.begun || !hn::AllFalse(FloatTag(), none_seen(softmax, 0))) return false;
  const bool all = pairs.keys == kBf16Keys && all_visible(step.block.tiles->visible.data() + step.block.column);
  bool raise = false;
  with_any_term(
      scratch.terms, step.block, /*unscored=*/true, [&](const auto& term) HWY_ATTR __attribute__((always_inline)) {
        raise = all ? weigh_columns<true>(head, step, term, pairs.begin(), softmax)
                    : weigh_columns<false>(head, step, term, pairs.begin(), softmax);
      });
  return !raise;
}
#endif

// Zeroes the weights that dropout does not keep.   keep [keys]: bits of the pairs; one more before and after is read
HWY_INLINE void drop_pairs(const StepPairs& step, const std::uint16_t* keep) {
  const UintTag du;
  keep -= step.lead % 2;
  const std::int64_t keys = step.keys + step.lead % 2;
  for (std::int64_t j = 0; j < keys; j += 2) {
    for (int v = 0; v < kGroupVectors; ++v) {
      std::uint32_t* const place = step.begin() + j / 2 * kGroup + v * kLanes;  // [kLanes]
      const auto half = [&](std::int64_t key, std::uint32_t bits) HWY_ATTR {
        return hn::IfThenElseZero(hn::RebindMask(du, lanes_of(keep[key], v)), hn::Set(du, bits));
      };
      hn::StoreU(hn::And(hn::LoadU(du, place), hn::Or(half(j, 0x0000FFFFu), half(j + 1, 0xFFFF0000u))), du, place);
    }
  }
}

// Applies the pair terms to q·k before the logit loop. bf16 has no rel_k, w and rel_v (compute_of).
HWY_INLINE void join_bf16_pairs(const KeyBlock& block, const TermScratch& terms, bool scored, float* dots) {
  if (HWY_LIKELY(!terms.joined[block.set]) || (!scored && terms.late[block.set])) return;
  if (terms.dots != nullptr) std::copy_n(dots, block.keys * kGroup, terms.dots);  // backward
  if (terms.by_distance[block.set].used()) return join_by_distance(terms, block, block.keys, dots);
  apply_factors(terms.factors, labels_of(block), block.keys, dots);
}

// m of a key block, without the terms that the logit loop adds. The bits are the same in forward and backward, since a
// row's products do not depend on its neighbours.   scored: its type carries scores; s [keys in whole tiles, kGroup]
HWY_INLINE void bf16_dots(const HeadContext& head, const KeyBlock& block, bool scored, const GroupScratch& scratch,
                          float* s) {
  multiply_rows(head, block, block.panel->bf16().k_rows, scratch.bf16.q_pairs, s);
  join_bf16_pairs(block, scratch.terms, scored, s);
}

// A group's steps in order. In forward a key block is a whole run; it is cut here where the panel's columns are.
class StepWalk {
 public:
  HWY_INLINE explicit StepWalk(const SeenBlocks& seen) : block_(seen.blocks), end_(seen.blocks + seen.count) {}

  // Returns whether there is another step, and stores it in `step`.
  HWY_INLINE bool next(KeyBlock& step) {
    if (block_ == end_) return false;
    step = block_->from(first_);
    step.keys = std::min(kBf16Keys - step.row % kBf16Keys, step.keys);
    first_ += step.keys;
    if (first_ == block_->keys) ++block_, first_ = 0;
    return true;
  }

 private:
  const KeyBlock *block_, *end_;
  std::int64_t first_ = 0;
};

// Packs a step's keys and values.
HWY_INLINE void require_of(const HeadContext& head, const Bf16Step& step, const GroupScratch& scratch) {
  const KeyBlock& block = step.block;
  require_bf16(head, *block.panel, block.row + block.keys, scratch.bf16);
}

// Begins q·k of a step, unless C already holds the sum (mode read).
HWY_INLINE void begin_dots_of(const HeadContext& head, const Bf16Step& step, const TypeScores& scores,
                              const GroupScratch& scratch) {
  require_of(head, step, scratch);
  if (scores.mode == ScoreMode::read) return;
  const KeyBlock& block = step.block;
  const std::int64_t stride = head.bf16_stride;
  head.bf16->begin_dots(scratch.bf16.q_pairs, block.panel->bf16().k_rows + block.row * stride, stride, block.keys,
                        step.logits);
}

// m from a step's q·k.
HWY_INLINE void join_dots_of(const Bf16Step& step, const TypeScores& scores, const GroupScratch& scratch) {
  join_bf16_pairs(step.block, scratch.terms, scores.mode != ScoreMode::none, step.logits);
}

// m of the step whose q·k was begun last.
HWY_INLINE void end_dots_of(const HeadContext& head, const Bf16Step& step, const TypeScores& scores,
                            const GroupScratch& scratch) {
  if (scores.mode == ScoreMode::read) return;
  head.bf16->end_dots(step.block.keys, step.logits);
  join_dots_of(step, scores, scratch);
}

HWY_INLINE StepPairs pairs_of(const HeadContext& head, const Bf16Step& step) {
  return {lead_of(head, step.block), step.block.keys, head.bf16->key_alignment, step.w_pairs};
}

// The weights of a step whose type carries scores (its logit loop has no registers left for weights), whose reference
// is not yet set or must be raised, or which has half pairs.
HWY_NOINLINE inline void weigh_step_by_logits(const HeadContext& head, Bf16Step& step, const TypeScores& scores,
                                              const GroupScratch& scratch, RunningSoftmax& softmax) {
  // Starts at the reference, because only larger logits matter.
  FloatVec largest[kGroupVectors];  // [kGroup]
  for (int v = 0; v < kGroupVectors; ++v) largest[v] = softmax.reference[v];
  logits_of_block(head, step.block, scores, scratch.terms, step.logits, largest);
  if (any_outgrown(largest, softmax)) {
    if (softmax.begun) step.products.finish();  // the sums must be complete before they are rescaled
    follow_largest(head, largest, scratch.bf16.out_columns, softmax);
  }
  weights_of_logits(pairs_of(head, step), step.logits, step.products, softmax);
  softmax.begun = true;
}

// Logits and weights of a step.
HWY_INLINE void weigh_step(const HeadContext& head, Bf16Step& step, std::int64_t first_query, const TypeScores& scores,
                           const GroupScratch& scratch, RunningSoftmax& softmax) {
  const StepPairs pairs = pairs_of(head, step);
  pairs.clear_ends();
#if HWY_TARGET <= HWY_AVX3
  const bool done = weigh_step_directly(head, step, scores, pairs, scratch, softmax);
#else
  const bool done = false;
#endif
  if (!done) weigh_step_by_logits(head, step, scores, scratch, softmax);
  // The sum takes the weights before dropout.
  if (!head.dropout) return;
  std::uint16_t* const keep = scratch.keep + 1;  // [keys]
  keep_bits_of_block(head, step.block, first_query, keep);
  drop_pairs(pairs, keep);
}

// Adds a step's weighted values to the group's sums.
HWY_INLINE void add_values_of(const HeadContext& head, const StepPairs& pairs, const KeyBlock& block,
                              const Bf16Scratch& own) {
  // Values are read in whole tiles that start at cache line boundaries.
  const Bf16Panel& panel = block.panel->bf16();
  head.bf16->weighted_sum(pairs.pairs, panel.column(panel.v_columns, block.row - pairs.lead), pairs.lead + pairs.keys,
                          head.stride, own.out_columns);
}

// Prepares the products that are issued during the softmax of `now`: weights and values of the step before, keys of the
// step after.
HWY_INLINE void interleave_products(const HeadContext& head, const StepPairs& weights, const KeyBlock& values,
                                    const Bf16Step& after, const GroupScratch& scratch, Bf16Step& now) {
  const Bf16Panel &keys = after.block.panel->bf16(), &of_values = values.panel->bf16();
  now.operands = {scratch.bf16.q_pairs, keys.k_rows + after.block.row * head.bf16_stride, after.logits, weights.pairs,
                  of_values.column(of_values.v_columns, values.row - weights.lead)};
  now.products = InterleavedProducts(now.operands);
}

// The sums and the softmax of a group. Prefetches the rows `ahead`, distributed evenly over the steps.
HWY_INLINE void forward_steps(const HeadContext& head, const TypeScores* scores, const SeenBlocks& seen,
                              RowsAhead& ahead, const GroupScratch& scratch, RunningSoftmax& softmax) {
  const Bf16Scratch& own = scratch.bf16;
  std::int64_t columns = 0;
  for (std::int64_t n = 0; n < seen.count; ++n) columns += seen.blocks[n].keys;
  const std::int64_t share = ahead.rows() * kBf16Keys / std::max(columns, kBf16Keys) + 1;  // rows per step
  StepWalk walk(seen);
  // One column in front is reserved for a half pair.
  Bf16Step steps[2] = {{{}, scratch.p + kGroup, own.w_pairs[0]},
                       {{}, scratch.p + (kBf16Columns + 1) * kGroup, own.w_pairs[1]}};
  Bf16Step *now = &steps[0], *other = &steps[1];
  const bool interleaves = head.bf16->interleaves && head.stride == kInterleavedSize;
  bool more = walk.next(now->block), first = true;
  // The vector work of a group prefetches scores from its second step on.
  if (more) scores_ahead(scores[now->block.set], now->block).prefetch(now->block.keys);
  if (more) begin_dots_of(head, *now, scores[now->block.set], scratch);
  if (more) end_dots_of(head, *now, scores[now->block.set], scratch);
  while (more) {
    ahead.prefetch(share);
    // Of the step before, whose logits and key block are no longer needed.
    const StepPairs weights = pairs_of(head, *other);
    const KeyBlock values = other->block;
    more = walk.next(other->block);
    const TypeScores& later = scores[other->block.set];
    const bool interleaved = interleaves && !first && more && later.mode != ScoreMode::read;
    now->products = {};
    if (interleaved) {
      require_of(head, *other, scratch);
      interleave_products(head, weights, values, *other, scratch, *now);
    } else {
      if (!first) add_values_of(head, weights, values, own);
      if (more) begin_dots_of(head, *other, later, scratch);
    }
    weigh_step(head, *now, seen.first_query, scores[now->block.set], scratch, softmax);
    now->products.finish();
    if (interleaved) join_dots_of(*other, later, scratch);
    if (more && !interleaved) end_dots_of(head, *other, later, scratch);
    std::swap(now, other);
    first = false;
  }
  add_values_of(head, pairs_of(head, *other), other->block, own);
}

// As forward_group. result.max is the reference of the sums instead of the largest logit (-inf: no visible key).
HWY_INLINE void bf16_forward_group(const HeadContext& head, const TypeScores* scores, const SeenBlocks& seen,
                                   RowsAhead& ahead, const GroupScratch& scratch, GroupSoftmax& result) {
  const FloatTag d;
  const Bf16Scratch& own = scratch.bf16;
  const bool all_read = scores[0].mode == ScoreMode::read && scores[1].mode == ScoreMode::read;
  if (!all_read) make_bf16_table(head, own.q_pairs, scratch.terms, span_of_group(scratch.terms, seen));
  RunningSoftmax softmax;
  for (int v = 0; v < kGroupVectors; ++v) {
    softmax.reference[v] = hn::Set(d, -std::numeric_limits<float>::infinity());
    softmax.total[v] = hn::Zero(d);
  }
  // Components in rows, queries in lanes: the layout of the tiles' results and of follow_largest.
  std::fill_n(own.out_columns, head.stride * kGroup, 0.0f);
  head.bf16->open_sums(head.stride, own.out_columns);
  forward_steps(head, scores, seen, ahead, scratch, softmax);
  head.bf16->close_sums(head.stride, own.out_columns);
  // Transpose the output so that its rows are queries.
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
