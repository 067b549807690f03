// One group's working memory, and loading its queries as rows and as lanes. Highway's per-target include guard.
#if defined(SPARSE_CPU_GROUP_SCRATCH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_GROUP_SCRATCH_INL_H_
#undef SPARSE_CPU_GROUP_SCRATCH_INL_H_
#else
#define SPARSE_CPU_GROUP_SCRATCH_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "etc_core/base/transpose-inl.h"
#include "sparse/cpu/task_list.h"
#include "sparse/cpu/term_scratch-inl.h"
#include "sparse/cpu/tile_walk.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Scratch memory of one group.
struct GroupScratch {
  float* q_rows = nullptr;        // [kGroup, stride], zero for missing queries
  float* q_lanes = nullptr;       // [D, kGroup]
  float* p = nullptr;             // [columns, kGroup]: logits (base 2), then probabilities; in bf16 two steps' logits
  std::uint16_t* keep = nullptr;  // [columns]: bits of the pairs dropout keeps; in bf16 of one step, from index 1 on
  float* out = nullptr;           // [kGroup, stride]: output, or dq in backward
  KeyBlock* blocks = nullptr;     // key blocks of the task's panels that the group sees
  TermScratch terms;
  Bf16Scratch bf16;  // in bf16 only
  // Backward only.
  float* ds = nullptr;          // [columns, kGroup]: scale·dC
  float* dout_rows = nullptr;   // [kGroup, stride]
  float* dout_lanes = nullptr;  // [D, kGroup]
  // In bf16: arrays of the next block, whose products are issued before this block's vector work.
  float *next_p = nullptr, *next_ds = nullptr;

  // Makes the next block's arrays the current ones.
  void turn() {
    std::swap(p, next_p);
    std::swap(ds, next_ds);
    std::swap(bf16.w_pairs[0], bf16.w_pairs[1]);
  }

  static GroupScratch take(Arena& arena, const AttentionInputs& in, const HeadContext& head, const TaskSizes& sizes,
                           Pass pass) {
    const std::int64_t rows = kGroup * head.stride, lanes = head.stride * kGroup, columns = sizes.columns;
    const bool bf16 = head.bf16 != nullptr;
    GroupScratch scratch;
    scratch.q_rows = arena.take<float>(rows);
    scratch.q_lanes = arena.take<float>(lanes);
    scratch.terms = TermScratch::take(arena, in, head, columns, pass);
    scratch.p = arena.take<float>((bf16 ? 2 * kBf16Columns : columns) * kGroup);
    scratch.keep = arena.take<std::uint16_t>(bf16 ? kBf16Keys + 2 : columns);
    scratch.out = arena.take<float>(rows);
    scratch.blocks = arena.take<KeyBlock>(sizes.blocks);
    if (bf16) scratch.bf16 = Bf16Scratch::take(arena, head.stride, pass == Pass::backward);
    // Forward does not need the rest.
    if (pass == Pass::forward) return scratch;
    scratch.ds = arena.take<float>(columns * kGroup);
    if (bf16) scratch.next_p = scratch.p + kBf16Columns * kGroup, scratch.next_ds = arena.take<float>(columns * kGroup);
    scratch.dout_rows = arena.take<float>(rows);
    scratch.dout_lanes = arena.take<float>(lanes);
    return scratch;
  }
};

// to[c][i] = rows[i][c] for kGroup rows and columns.   rows [kGroup, stride], to [kGroup, to_stride]
HWY_INLINE void transpose_block(const float* rows, std::int64_t stride, float* to, std::int64_t to_stride) {
  static_assert(kGroup == etc::HWY_NAMESPACE::kTransposed);
  etc::HWY_NAMESPACE::transpose_block(rows, stride, to, to_stride);
}

// lanes[d][i] = rows[i][d].   rows [kGroup, stride], lanes [stride, kGroup]; stride a multiple of kGroup
// Done once per group: 16 rows of D, compared with hundreds of keys that need no transposition.
HWY_INLINE void transpose_group(const float* rows, std::int64_t stride, float* lanes) {
  for (std::int64_t d = 0; d < stride; d += kGroup) transpose_block(rows + d, stride, lanes + d * kGroup, kGroup);
}

// The key blocks that a group sees.
struct SeenBlocks {
  std::int64_t first_query;  // of the group, for dropout's numbers
  const KeyBlock* blocks;
  std::int64_t count;
};

// A group's softmax, one value per lane: max_i = max_j logit_ij (-inf without a visible key), sum_i = sum_j
// 2^(logit_ij - max_i); logits in base 2.
struct GroupSoftmax {
  FloatVec max[kGroupVectors];  // [kGroup]
  FloatVec sum[kGroupVectors];  // [kGroup]
};

// Values of a group's rows for backward, one per lane.
struct RowStatistics {
  FloatVec lse[kGroupVectors];    // [kGroup], base 2, finite
  FloatVec delta[kGroupVectors];  // [kGroup]  dout·out
};

// Copies a group's queries (or dout) and, in fp32, transposes them.
HWY_INLINE void load_group(const Rows& from, const HeadContext& context, const QueryGroup& group, float* group_rows,
                           float* group_lanes) {
  copy_rows(from, context.columns(), group.row, group.queries, group_rows);
  // A short group's missing queries are zeros: their products are finite and never read.
  std::fill(group_rows + group.queries * context.stride, group_rows + kGroup * context.stride, 0.0f);
  if (context.bf16 == nullptr) transpose_group(group_rows, context.stride, group_lanes);
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
