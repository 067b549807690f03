// Rounding a task's operands to bf16 and laying them out for Bf16Tiles: keys and values when a group first needs them,
// so that memory works while tiles do. Rows come straight from the operator's inputs. Highway's per-target include
// guard.
#if defined(SPARSE_CPU_BF16_FILL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_BF16_FILL_INL_H_
#undef SPARSE_CPU_BF16_FILL_INL_H_
#else
#define SPARSE_CPU_BF16_FILL_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "sparse/cpu/bf16_tiles.h"
#include "sparse/cpu/group_scratch-inl.h"
#include "sparse/cpu/tile_walk.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A group's queries as pairs: of rounded rows, neighbours are pairs already, which are then transposed.
// q_rows [kGroup, stride], q_pairs [stride / 2, kGroup, 2]
HWY_INLINE void load_bf16_queries(const Rows& q, const HeadContext& context, const QueryGroup& group,
                                  const Bf16Scratch& scratch) {
  const std::int64_t stride = context.bf16_stride, pairs = stride / 2;
  for (std::int64_t i = 0; i < group.queries; ++i) {
    context.bf16->round_row(head_row(q, group.row + i, context.index, context.head_size), context.head_size, stride,
                            scratch.q_rows + i * stride);
  }
  std::fill(scratch.q_rows + group.queries * stride, scratch.q_rows + kGroup * stride, std::uint16_t{0});
  const auto* from = reinterpret_cast<const float*>(scratch.q_rows);
  auto* to = reinterpret_cast<float*>(scratch.q_pairs);
  // A pair of bf16 numbers is as wide as a float, so the transposition of floats turns pairs.
  for (std::int64_t c = 0; c < pairs; c += kGroup) transpose_block(from + c, pairs, to + c * kGroup, kGroup);
}

// kTilePairs keys from row j on, as far as there are any, into the columns of to.v: pairs of rows, then their
// transposition, 16 components at a time.   pairs [kGroup, stride] floats
HWY_INLINE void values_to_columns(const Bf16Tiles& tiles, const KeyPanel& panel, std::int64_t j, std::int64_t size,
                                  std::int64_t stride, float* pairs) {
  const Bf16Panel& to = panel.bf16();
  // Keys there are; pairs beyond are zeros (null rows).
  const std::int64_t some = std::min(kTilePairs, panel.keys() - j);
  for (std::int64_t pair = 0; pair < kGroup; ++pair) {
    const std::int64_t key = 2 * pair;
    const float* first = key < some ? panel.value_row(j + key) : nullptr;           // [D]
    const float* second = key + 1 < some ? panel.value_row(j + key + 1) : nullptr;  // [D]
    tiles.round_pairs(first, second, size, stride, reinterpret_cast<std::uint16_t*>(pairs + pair * stride));
  }
  // [16 pairs of keys, 16 components] to [16 components, 16 pairs of keys]
  for (std::int64_t c = 0; c < stride; c += kGroup) {
    transpose_block(pairs + c, stride, reinterpret_cast<float*>(to.v + c * to.v_stride + j), to.v_stride / 2);
  }
}

// Makes rows [0, end) usable: keys in rows, values in columns (a row per component). In whole tiles: the last step of
// a key block may reach beyond the panel, where weights are 0 and values must be numbers.
HWY_INLINE void require_bf16(const HeadContext& head, KeyPanel& panel, std::int64_t end, const Bf16Scratch& scratch) {
  const Bf16Panel& to = panel.bf16();
  std::int64_t j = panel.filled();
  // Most steps find their keys there: the groups of a task see nearly the same ones.
  if (HWY_LIKELY(end <= j)) return;
  for (; j < end; j += kTilePairs) {
    const std::int64_t keys = std::min(panel.keys(), j + kTilePairs);
    for (std::int64_t r = j; r < keys; ++r)
      head.bf16->round_row(panel.key_row(r), head.head_size, to.k_stride, to.k + r * to.k_stride);
    values_to_columns(*head.bf16, panel, j, head.head_size, head.stride, scratch.pairs);
  }
  panel.set_filled(j);
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
