// Rounds a task's operands to bf16 and packs them for Bf16Tiles. Keys and values are packed when a group first needs
// them, so that memory accesses overlap with tile products. Rows are read directly from the operator's inputs.
// Highway's per-target include guard.
#if defined(SPARSE_CPU_BF16_FILL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_BF16_FILL_INL_H_
#undef SPARSE_CPU_BF16_FILL_INL_H_
#else
#define SPARSE_CPU_BF16_FILL_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "sparse/cpu/bf16_tiles.h"
#include "sparse/cpu/group_scratch-inl.h"
#include "sparse/cpu/head_rows-inl.h"
#include "sparse/cpu/tile_walk.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rounded rows of a group as pairs of components: adjacent components already are pairs, which are transposed.
// rows [kGroup, row_stride], to [row_stride / 2, kGroup, 2]
HWY_INLINE void pair_components(const HeadContext& context, const std::uint16_t* rows, std::uint16_t* to) {
  const std::int64_t pairs = context.bf16_stride / 2;
  // A pair of bf16 numbers has the size of a float, so the transposition of floats transposes pairs.
  for (std::int64_t c = 0; c < pairs; c += kGroup) {
    transpose_block(reinterpret_cast<const float*>(rows) + c, pairs, reinterpret_cast<float*>(to) + c * kGroup, kGroup);
  }
}

// Rounds an fp32 row or copies a bf16 row; zero beyond D.   to [row_stride]
HWY_INLINE void round_row(const HeadContext& head, const HeadRow& row, std::uint16_t* to) {
  if (row.bf16 == nullptr) return head.bf16->round_row(row.fp32, head.head_size, head.bf16_stride, to);
  std::memcpy(to, row.bf16, static_cast<std::size_t>(head.head_size) * sizeof(Bf16));
  std::fill(to + head.head_size, to + head.bf16_stride, std::uint16_t{0});
}

// Interleaves two rows of D = size numbers as pairs; null: zeros.   to [size, 2]; size a multiple of kGroup
HWY_INLINE void join_rows(const Bf16* first, const Bf16* second, std::int64_t size, std::uint16_t* to) {
  const UintTag du;
  const auto numbers = [&](const Bf16* row, std::int64_t c) HWY_ATTR {
    if (row == nullptr) return hn::Zero(du);
    return hn::PromoteTo(du, hn::LoadU(NarrowTag(), &row[c].bits));
  };
  for (std::int64_t c = 0; c < size; c += kLanes) {
    // Little-endian: the first row's number is the lower half.
    const UintVec pair = hn::Or(numbers(first, c), hn::ShiftLeft<16>(numbers(second, c)));
    hn::StoreU(pair, du, reinterpret_cast<std::uint32_t*>(to + 2 * c));
  }
}

// The same for rows of either type.   to [stride, 2]
HWY_INLINE void round_pairs(const HeadContext& head, const HeadRow& first, const HeadRow& second, std::uint16_t* to) {
  if (first.bf16 == nullptr) {
    return head.bf16->round_pairs(first.fp32, second.fp32, head.head_size, head.stride, to);
  }
  // Rows are bf16 only where D is a multiple of kGroup (row_type()), so there is no padding.
  join_rows(first.bf16, second.bf16, head.head_size, to);
}

// Loads a group's queries directly from the operator's inputs.
HWY_INLINE void load_bf16_queries(const Rows& q, const HeadContext& context, const QueryGroup& group,
                                  const Bf16Scratch& scratch) {
  const std::int64_t stride = context.bf16_stride;
  for (std::int64_t i = 0; i < group.queries; ++i) {
    round_row(context, row_in(q, context.columns(), group.row + i), scratch.rows + i * stride);
  }
  std::fill(scratch.rows + group.queries * stride, scratch.rows + kGroup * stride, std::uint16_t{0});
  pair_components(context, scratch.rows, scratch.q_pairs);
}

// Rounds a group's copied rows.   group_rows [kGroup, stride], to [kGroup, row_stride]
HWY_INLINE void round_group(const HeadContext& context, const float* group_rows, std::uint16_t* to) {
  for (std::int64_t i = 0; i < kGroup; ++i) {
    context.bf16->round_row(group_rows + i * context.stride, context.stride, context.bf16_stride,
                            to + i * context.bf16_stride);
  }
}

// A group's rows as pairs of queries: half of the pairs of two groups. The other half is zero until its group comes.
//   group_rows [kGroup, stride], to [kTileRows16, stride, 2], number: of the group, 0 or 1
HWY_INLINE void pair_queries(const HeadContext& context, const float* group_rows, std::int64_t number,
                             std::uint16_t* to) {
  const std::int64_t stride = context.stride, pair = 2 * stride, half = kGroup / 2 * pair;
  if (number == 0) std::fill_n(to + half, half, std::uint16_t{0});
  to += number * half;
  for (std::int64_t p = 0; p < kGroup / 2; ++p) {
    const float* const first = group_rows + p * pair;  // [2, stride]
    context.bf16->round_pairs(first, first + stride, stride, stride, to + p * pair);
  }
}

// Rows of kTilePairs keys; rows beyond the last key are not given.
struct PanelRows {
  HeadRow row[kTilePairs];
};

// Writes kTilePairs keys as columns: pairs of rows are built and transposed, 16 components at a time.
//   pairs [kGroup, stride] floats, to [components, kTilePairs]
HWY_INLINE void rows_to_columns(const HeadContext& head, const PanelRows& rows, float* pairs, std::uint16_t* to) {
  const std::int64_t stride = head.stride;
  for (std::int64_t pair = 0; pair < kGroup; ++pair) {
    round_pairs(head, rows.row[2 * pair], rows.row[2 * pair + 1],
                reinterpret_cast<std::uint16_t*>(pairs + pair * stride));
  }
  // [16 pairs of keys, 16 components] to [16 components, 16 pairs of keys]
  for (std::int64_t c = 0; c < stride; c += kGroup) {
    transpose_block(pairs + c, stride, reinterpret_cast<float*>(to + c * kTilePairs), kTilePairs / 2);
  }
}

// Rounds kTilePairs rows of a panel into the layout of the products, with zeros beyond the last key, since backward
// multiplies these rows with zeros and they must be finite.   to [kTilePairs, row_stride]
HWY_INLINE void round_panel_rows(const HeadContext& head, const PanelRows& rows, std::uint16_t* to) {
  for (std::int64_t r = 0; r < kTilePairs; ++r, to += head.bf16_stride) {
    if (rows.row[r].given()) {
      round_row(head, rows.row[r], to);
    } else {
      std::fill_n(to, head.bf16_stride, std::uint16_t{0});
    }
  }
}

// Multiplies a key block's panel rows (keys or values) by pairs of components: s = rows · pairs.
//   s [keys in whole tiles, kGroup]
HWY_INLINE void multiply_rows(const HeadContext& head, const KeyBlock& block, const std::uint16_t* panel_rows,
                              const std::uint16_t* pairs, float* s) {
  const std::int64_t stride = head.bf16_stride;
  head.bf16->dot_products(pairs, panel_rows + block.row * stride, stride, block.keys, s);
}

// Keys from the last multiple of the alignment, where products start reading columns, to the key block's start.
HWY_INLINE std::int64_t lead_of(const HeadContext& head, const KeyBlock& block) {
  return block.row % head.bf16->key_alignment;
}

// Makes rows [0, end) usable in the panel's layouts, in whole tiles: the last step of a key block may extend beyond the
// panel, where weights are 0 and values must be finite.
HWY_INLINE void require_bf16(const HeadContext& head, KeyPanel& panel, std::int64_t end, const Bf16Scratch& scratch) {
  const Bf16Panel& to = panel.bf16();
  std::int64_t j = panel.filled();
  // Most steps find their keys already packed, because the groups of a task see nearly the same keys.
  if (HWY_LIKELY(end <= j)) return;
  for (; j < end; j += kTilePairs) {
    PanelRows k, v;
    for (std::int64_t r = 0; r < kTilePairs; ++r) {
      k.row[r] = panel.key_row(j + r);
      v.row[r] = panel.value_row(j + r);
    }
    const std::int64_t row = j * to.row_stride;
    round_panel_rows(head, k, to.k_rows + row);
    if (to.v_rows != nullptr) round_panel_rows(head, v, to.v_rows + row);
    if (to.k_columns != nullptr) rows_to_columns(head, k, scratch.pairs, to.column(to.k_columns, j));
    if (to.v_columns != nullptr) rows_to_columns(head, v, scratch.pairs, to.column(to.v_columns, j));
  }
  panel.set_filled(j);
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
