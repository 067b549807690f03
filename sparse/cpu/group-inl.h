// One group of kGroup queries against the keys of a task, forward and backward: the arithmetic of both divisions of work.
//
// All arrays whose last dimension is kGroup consist of columns: one cache line per key (or label), one lane per query.
// Forward, a group of 16 queries against n keys:
//   q_lanes [D, 16], k [n, stride]  --dot_products-->  p [n, 16]  --logits, powers-->  p  --weighted_sum with v-->  out
// and backward, per key block of 32 keys:
//   p [32, 16] again, from q·k or from C            ds [32, 16] = p (dout·v - delta), from dout_lanes and v
//   dq += dsᵀ k,  dk += ds q,  dv += p dout         five products on the same 32 rows of k, v, dk, dv
// Contributions of tables are in score_terms-inl.h, pair_terms-inl.h and value_terms-inl.h.
#if defined(SPARSE_CPU_GROUP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_GROUP_INL_H_
#undef SPARSE_CPU_GROUP_INL_H_
#else
#define SPARSE_CPU_GROUP_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <limits>

#include "sparse/cpu/bf16_backward-inl.h"
#include "sparse/cpu/bf16_group-inl.h"
#include "sparse/cpu/dropout-inl.h"
#include "sparse/cpu/group_scratch-inl.h"
#include "sparse/cpu/lanes-inl.h"
#include "sparse/cpu/logits-inl.h"
#include "sparse/cpu/pair_terms-inl.h"
#include "sparse/cpu/register_tile-inl.h"
#include "sparse/cpu/score_gradients-inl.h"
#include "sparse/cpu/tile_walk.h"
#include "sparse/cpu/value_terms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Keys copied and multiplied at a time in forward.
inline constexpr std::int64_t kKeyStep = 64;
static_assert(kKeyStep % kRunStep == 0);

HWY_INLINE void forward_block(const HeadContext& head, const KeyBlock& block, const TypeScores& scores,
                              const GroupScratch& scratch, float* s, FloatVec* max) {
  // In steps, so that the keys of the next step are being prefetched while this step is multiplied.
  for (std::int64_t j = 0; j < block.keys; j += kKeyStep) {
    const std::int64_t keys = std::min(kKeyStep, block.keys - j);
    block.panel->require(block.row + j + keys);
    // In mode read C already holds the sum; the panel's copy is still needed for the values.
    if (scores.mode == ScoreMode::read) continue;
    dots_of_block(head, block, {j, keys, scores.mode != ScoreMode::none, scores_ahead(scores, block.from(j))}, scratch,
                  s + j * kGroup);
  }
  logits_of_block(head, block, scores, scratch.terms, s, max);
}

// Loads a group's queries in the layout that forward_group needs.
HWY_INLINE void load_queries(const Rows& q, const HeadContext& head, const QueryGroup& group,
                             const GroupScratch& scratch) {
  if (head.bf16 != nullptr) {
    load_bf16_queries(q, head, group, scratch.bf16);
  } else {
    load_group(q, head, group, scratch.q_rows, scratch.q_lanes);
  }
}

// Replaces the logits p [columns, kGroup] of a group by powers of two, and computes their sum. Subtracting the maximum
// keeps them in (0, 1]; a row without a visible key subtracts 0, so that -inf stays -inf and its power is 0. The sum is
// over the powers before dropout and in fp32, because the softmax must be divided by the whole mass.
HWY_INLINE void powers_of_group(std::int64_t columns, float* p, GroupSoftmax& softmax) {
  const FloatTag d;
  const FloatVec none = hn::Set(d, -std::numeric_limits<float>::infinity());
  FloatVec shift[kGroupVectors], total[kGroupVectors];  // [kGroup] each
  for (int v = 0; v < kGroupVectors; ++v) {
    shift[v] = hn::IfThenZeroElse(hn::Eq(softmax.max[v], none), softmax.max[v]);
    total[v] = hn::Zero(d);
  }
  for (std::int64_t j = 0; j < columns; ++j) {
    for (int v = 0; v < kGroupVectors; ++v) {
      float* place = p + j * kGroup + v * kLanes;  // [kLanes]: key j
      const FloatVec e = power_of_two(hn::Sub(hn::LoadU(d, place), shift[v]));
      total[v] = hn::Add(total[v], e);
      hn::StoreU(e, d, place);
    }
  }
  for (int v = 0; v < kGroupVectors; ++v) softmax.sum[v] = total[v];
}

// Softmax of one group over the key blocks it sees, not yet divided by its sum.
//   scratch.out[i] = sum_j keep_ij 2^(logit_ij - max_i) (v_j + rel_v[label_ij])
// Call load_queries first. scores: of both types, with `running` advanced to this head. ahead: rows to prefetch.
// Not inlined: one copy for both divisions of work halves the compile time.
HWY_NOINLINE inline void forward_group(const HeadContext& head, const TypeScores* scores, const SeenBlocks& seen,
                                       RowsAhead& ahead, const GroupScratch& scratch, GroupSoftmax& softmax) {
  if (head.bf16 != nullptr) return bf16_forward_group(head, scores, seen, ahead, scratch, softmax);
  const auto [first_query, blocks, count] = seen;
  const GroupSpan span = span_of_group(scratch.terms, seen);
  const FloatVec none = hn::Set(FloatTag(), -std::numeric_limits<float>::infinity());
  for (int v = 0; v < kGroupVectors; ++v) softmax.max[v] = none;
  // All at once: in fp32 a group takes far longer than fetching these few rows.
  ahead.prefetch(ahead.rows());
  const bool all_read = scores[0].mode == ScoreMode::read && scores[1].mode == ScoreMode::read;
  if (!all_read) make_table(head, scratch.q_lanes, scratch.terms, span);

  // Pass 1: logits, their maximum, running scores. The key blocks are contiguous in scratch.p, so pass 2 can ignore
  // block boundaries.
  std::int64_t columns = 0;
  for (std::int64_t n = 0; n < count; columns += blocks[n].keys, ++n) {
    forward_block(head, blocks[n], scores[blocks[n].set], scratch, scratch.p + columns * kGroup, softmax.max);
  }

  // Pass 2: powers and their sum.
  powers_of_group(columns, scratch.p, softmax);

  // Pass 3: dropout (after the sum, since it is not renormalised), then the weighted sum of values, accumulated over
  // key blocks.
  std::fill_n(scratch.out, kGroup * head.stride, 0.0f);
  clear_label_weights(scratch.terms, span);
  float* weights = scratch.p;  // [columns, kGroup]: 2^(logit - max)
  for (std::int64_t n = 0; n < count; weights += blocks[n].keys * kGroup, ++n) {
    const KeyBlock& block = blocks[n];
    if (head.dropout) drop_weights(head, block, first_query, scratch.keep, weights);
    weighted_sum(weights, block.panel->v(block.row), head.stride, block.keys,
                 block.tiles->visible.data() + block.column, scratch.out);
    add_label_weights(scratch.terms, block, weights);
  }
  add_relative_values(head, scratch.terms, span, scratch.out);
}

// The products of backward, in the number type of the task.

// Computes m of a key block.   scored: its type carries scores
HWY_INLINE void query_dots(const HeadContext& head, const KeyBlock& block, bool scored, const GroupScratch& scratch,
                           float* s) {
  if (head.bf16 != nullptr) return bf16_dots(head, block, scored, scratch, s);
  dots_of_block(head, block, {0, block.keys, scored}, scratch, s);
}

// Computes dout·v. ahead: C of the block, which bf16 prefetches in the vector work (ScoresAhead).
HWY_INLINE void value_dots(const HeadContext& head, const KeyBlock& block, ColumnsAhead ahead,
                           const GroupScratch& scratch, float* dp) {
  if (head.bf16 != nullptr) {
    return multiply_rows(head, block, block.panel->bf16().v_rows, scratch.bf16.dout_pairs, dp);
  }
  dot_products(scratch.dout_lanes, {block.panel->v(block.row), head.stride, block.keys, ahead}, head.head_size, dp);
}

// dq += ds k, dk += ds q, since score = scale q·k; dv += p dout, since out = sum_j p v. In bf16 this function only
// rounds the operands; multiply_gradients multiplies them later. carried: as in joined_gradients.
HWY_INLINE void add_gradients(const HeadContext& head, const KeyBlock& block, const GroupScratch& scratch,
                              bool carried) {
  if (head.bf16 != nullptr) return round_gradients(head, block, scratch, carried);
  dots_gradients(head, block, scratch, carried);
  outer_products(scratch.p, scratch.dout_rows, head.stride, block.keys, block.panel->dv(block.row));
}

// The products that precede a key block's vector work: q·k into scratch.p if needed, dout·v into scratch.ds. Also makes
// the block's rows and their gradients usable.
HWY_INLINE void multiply_block(const HeadContext& head, const KeyBlock& block, const TypeScoreGradients& scores,
                               const GroupScratch& scratch) {
  block.panel->require(block.row + block.keys);
  if (head.bf16 != nullptr) require_bf16(head, *block.panel, block.row + block.keys, scratch.bf16);
  if (head.bf16 == nullptr && scores.mode == ScoreGradientMode::inner)
    columns_ahead(scores.gradient, block).prefetch(block.keys);
  if (!carries(scores)) query_dots(head, block, /*scored=*/false, scratch, scratch.p);
  value_dots(head, block, carries(scores) ? columns_ahead(scores.running, block) : ColumnsAhead{}, scratch, scratch.ds);
}

// C = C - s: the running scores of the layer before. s is computed by the same instructions as in forward, bit by bit.
HWY_INLINE void rewind_block(const HeadContext& head, const KeyBlock& block, const TypeScoreGradients& scores,
                             const GroupScratch& scratch) {
  const IntTag di;
  query_dots(head, block, /*scored=*/true, scratch, scratch.p);
  ScoreElement* running = scores.running + block.column * kGroup;  // [keys, kGroup]
  with_term(
      scratch.terms, block, [&](const auto& term) HWY_ATTR __attribute__((always_inline)) {
        for (std::int64_t j = 0; j < block.keys; ++j) {
          for (int v = 0; v < kGroupVectors; ++v) {
            ScoreElement* place = running + j * kGroup + v * kLanes;  // [kLanes]
            const auto own = score_element(score(head, term, scratch.p, j, v));
            hn::StoreU(hn::Sub(hn::LoadU(di, place), own), di, place);
          }
        }
      });
}

// The vector work of a key block between its products. C is rewound last, because p is computed from C and rewinding
// overwrites scratch.p.
HWY_INLINE void block_gradients(const HeadContext& head, const KeyBlock& block, const TypeScoreGradients& scores,
                                std::int64_t first_query, const GroupScratch& scratch, const RowStatistics& rows) {
  // scratch.p: probabilities after dropout [keys, kGroup]; scratch.ds: scale·dC [keys, kGroup]
  add_value_dots(scratch.terms, block, scratch.ds);
  if (head.dropout) {
    probabilities_of_block(head, block, scores, scratch, rows.lse);
    score_gradients_of_block(head, block, scores, first_query, scratch, rows.delta);
  } else if (scores.mode == ScoreGradientMode::none) {
    plain_gradients_of_block(head, block, scratch, rows);
  } else if (scores.mode == ScoreGradientMode::inner) {
    carried_gradients_of_block<ScoreGradientMode::inner>(head, block, scores, scratch, rows);
  } else {
    carried_gradients_of_block<ScoreGradientMode::first>(head, block, scores, scratch, rows);
  }
  add_term_gradients(scratch.terms, block, scratch.ds);
  add_gradients(head, block, scratch, /*carried=*/carries(scores));
  add_label_weights(scratch.terms, block, scratch.p);
  if (carries(scores) && scores.rewind) rewind_block(head, block, scores, scratch);
}

// Processes the key blocks of a group. In bf16 the last products of the previous block and the first products of the
// next block are issued before this block's vector work, which is independent of both, so that the tile unit and the
// vector units work at the same time.
HWY_INLINE void gradients_of_blocks(const HeadContext& head, const TypeScoreGradients* scores, const SeenBlocks& seen,
                                    RowsAhead& ahead, GroupScratch& scratch, const RowStatistics& rows) {
  const auto [first_query, blocks, count] = seen;
  const bool bf16 = head.bf16 != nullptr;
  // No overlap with factors: their gradients need q·k of the current block, for which only one array exists.
  const bool overlap = bf16 && scratch.terms.dots == nullptr;
  const auto begin = [&](std::int64_t n) HWY_ATTR { multiply_block(head, blocks[n], scores[blocks[n].set], scratch); };
  // The vector work of a group prefetches scores from its second block on.
  if (bf16) prefetch_scores(blocks[0], scores[blocks[0].set]);
  if (overlap) {
    begin(0);
    scratch.turn();
  }
  const std::int64_t share = ceil_div(ahead.rows(), count);  // prefetched per block
  for (std::int64_t n = 0; n < count; ++n) {
    ahead.prefetch(share);
    if (bf16 && n > 0) multiply_gradients(head, blocks[n - 1], scratch.bf16);
    if (!overlap) {
      begin(n);
    } else {
      // Uses the arrays of the previous block, which are free.
      if (n + 1 < count) begin(n + 1);
      scratch.turn();
    }
    block_gradients(head, blocks[n], scores[blocks[n].set], first_query, scratch, rows);
  }
  if (bf16) multiply_gradients(head, blocks[count - 1], scratch.bf16);
}

// Gradients of one group over the key blocks it sees, block by block, so that a block's keys, values and their
// gradients stay in the L1 cache between products.
//   scratch.out (dq) = sum_j ds_ij (k_j + rel[label_ij]);  the panels' dk, dv and the terms' sums are added to
// scratch.q_* and scratch.dout_* must be loaded. Not inlined, like forward_group.
HWY_NOINLINE inline void backward_group(const HeadContext& head, const TypeScoreGradients* scores,
                                        const SeenBlocks& seen, RowsAhead& ahead, GroupScratch& scratch,
                                        const RowStatistics& rows) {
  const GroupSpan span = span_of_group(scratch.terms, seen);
  // If a type carries scores and is not rewound, s is not computed, so the table is not needed.
  const auto needs_scores = [](const TypeScoreGradients& s) { return !carries(s) || s.rewind; };
  const bool needs_table = needs_scores(scores[0]) || needs_scores(scores[1]);
  if (head.bf16 != nullptr) {
    pair_backward_group(head, scratch);
    if (needs_table) make_bf16_table(head, scratch.bf16.q_pairs, scratch.terms, span);
  } else {
    std::fill_n(scratch.out, kGroup * head.stride, 0.0f);
    if (needs_table) make_table(head, scratch.q_lanes, scratch.terms, span);
  }
  clear_term_gradients(scratch.terms, span);
  clear_label_weights(scratch.terms, span);
  make_value_table(head, scratch.terms, span, scratch.dout_lanes);
  gradients_of_blocks(head, scores, seen, ahead, scratch, rows);
  if (head.bf16 != nullptr) {
    bf16_finish_group(head, scratch);
    ++scratch.bf16.groups;
  }
  finish_term_gradients(head, scratch.terms, span, scratch.q_rows, scratch.out);
  finish_value_gradients(head, scratch.terms, span, scratch.dout_rows);
}

// sum_c x_c y_c, c < size: whole vectors first, then the remaining components. The order is the same for every row, so
// the bits depend on D alone.
template <typename T>
HWY_INLINE float dot_of_row(const T* x, const float* y, std::int64_t size) {
  const FloatTag d;
  FloatVec sum = hn::Zero(d);
  std::int64_t c = 0;
  for (; c + kLanes <= size; c += kLanes) sum = hn::MulAdd(load_numbers(x + c), hn::LoadU(d, y + c), sum);
  float total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; c < size; ++c) total += as_float(x[c]) * y[c];
  return total;
}

// delta_i = dout_i·out_i for the rows of a group, and lse in base 2, made finite (any number without a visible key).
HWY_INLINE void load_row_statistics(const HeadContext& head, const Rows& out, const float* lse, const QueryGroup& group,
                                    const float* dout_rows, RowStatistics& to) {
  const FloatTag d;
  HWY_ALIGN float lse_values[kGroup] = {};  // base 2
  HWY_ALIGN float delta_values[kGroup] = {};
  for (std::int64_t i = 0; i < group.queries; ++i) {
    const HeadRow out_row = row_in(out, head.columns(), group.row + i);  // [D]
    const float* dout_row = dout_rows + i * head.stride;                 // [stride]
    delta_values[i] = out_row.bf16 == nullptr ? dot_of_row(out_row.fp32, dout_row, head.head_size)
                                              : dot_of_row(out_row.bf16, dout_row, head.head_size);
    const float value = lse[group.row + i];
    // -inf would give NaN in the difference. These rows have no visible pair, so any finite number will do.
    lse_values[i] = value > -std::numeric_limits<float>::infinity() ? value * kLog2E : 0.0f;
  }
  for (int v = 0; v < kGroupVectors; ++v) {
    to.lse[v] = hn::LoadU(d, lse_values + v * kLanes);
    to.delta[v] = hn::LoadU(d, delta_values + v * kLanes);
  }
}

// Writes rows of a group to the result: to[i][c] = rows[i][c] * factor[i], c < D. past_caches: with non-temporal
// stores, which need whole cache lines (streams_rows).
HWY_INLINE void store_group(const float* group_rows, const HeadContext& head, const float* factor,
                            const MutableRows& to, const QueryGroup& group, bool past_caches) {
  const auto store = [&](const float* from, float by, auto* row) HWY_ATTR {
    past_caches ? store_scaled<true>(from, by, head.head_size, row)
                : store_scaled<false>(from, by, head.head_size, row);
  };
  for (std::int64_t i = 0; i < group.queries; ++i) {
    const float* from = group_rows + i * head.stride;  // [stride]
    const MutableHeadRow row = row_in(to, head.columns(), group.row + i);
    row.bf16 == nullptr ? store(from, factor[i], row.fp32) : store(from, factor[i], row.bf16);
  }
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
