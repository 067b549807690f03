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

#include "etc_core/base/bf16-inl.h"
#include "sparse/cpu/bf16_tiles.h"
#include "sparse/cpu/group_scratch-inl.h"
#include "sparse/cpu/lanes-inl.h"
#include "sparse/cpu/tile_walk.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Two lines of floats as bf16 pairs: the first in the lower halves.
HWY_INLINE UintVec bf16_pairs(FloatVec first, FloatVec second) {
  const FloatTag d;
  return hn::Or(etc::HWY_NAMESPACE::bf16_bits(d, first), hn::ShiftLeft<16>(etc::HWY_NAMESPACE::bf16_bits(d, second)));
}

// Components c … of a row of `size`, zero beyond.
HWY_INLINE FloatVec load_components(const float* row, std::int64_t c, std::int64_t size) {
  const FloatTag d;
  if (HWY_LIKELY(c + kLanes <= size)) return hn::LoadU(d, row + c);
  if (c >= size) return hn::Zero(d);
  return hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(size - c)), d, row + c);
}

// One row of `size` floats -> bf16 [bf16_stride], zero beyond.
HWY_INLINE void row_to_bf16(const float* row, std::int64_t size, std::int64_t bf16_stride, std::uint16_t* to) {
  const FloatTag d;
  const IntTag di;
  const hn::Rebind<std::uint16_t, FloatTag> narrow;
  for (std::int64_t c = 0; c < bf16_stride; c += kLanes) {
    const auto bits = hn::BitCast(di, etc::HWY_NAMESPACE::bf16_bits(d, load_components(row, c, size)));
    hn::StoreU(hn::DemoteTo(narrow, bits), narrow, to + c);
  }
}

// A group's queries as pairs: of rounded rows, neighbours are pairs already, which are then transposed.
HWY_INLINE void load_bf16_queries(const Rows& q, std::int64_t head, const HeadContext& context, std::int64_t first_row,
                                  std::int64_t rows, const Bf16Scratch& scratch) {
  const std::int64_t stride = context.bf16_stride, pairs = stride / 2;
  for (std::int64_t i = 0; i < rows; ++i) {
    row_to_bf16(head_row(q, first_row + i, head, context.head_size), context.head_size, stride,
                scratch.q_rows + i * stride);
  }
  std::fill(scratch.q_rows + rows * stride, scratch.q_rows + kGroup * stride, std::uint16_t{0});
  const auto* from = reinterpret_cast<const float*>(scratch.q_rows);
  auto* to = reinterpret_cast<float*>(scratch.q_pairs);
  for (std::int64_t c = 0; c < pairs; c += kGroup) transpose_block(from + c, pairs, to + c * kGroup, kGroup);
}

// kTilePairs keys from row j on, as far as there are any, into the columns of to.v: pairs of rows, then their
// transposition, 16 components at a time.   block: [kGroup, kGroup] floats
HWY_INLINE void values_to_columns(const KeyPanel& panel, std::int64_t j, std::int64_t size, std::int64_t stride,
                                  float* block) {
  const UintTag du;
  const Bf16Panel& to = panel.bf16();
  const std::int64_t some = std::min(kTilePairs, panel.keys() - j);
  for (std::int64_t c = 0; c < stride; c += kGroup) {
    for (std::int64_t pair = 0; pair < kGroup; ++pair) {
      const std::int64_t key = 2 * pair;
      for (int p = 0; p < kParts; ++p) {
        const std::int64_t at = c + p * kLanes;
        const FloatVec first = load_components(panel.value_row(j + key), at, key < some ? size : 0);
        const FloatVec second = load_components(panel.value_row(j + key + 1), at, key + 1 < some ? size : 0);
        hn::StoreU(bf16_pairs(first, second), du, reinterpret_cast<std::uint32_t*>(block + pair * kGroup + p * kLanes));
      }
    }
    transpose_block(block, kGroup, reinterpret_cast<float*>(to.v + c * to.v_stride + j), to.v_stride / 2);
  }
}

// Makes rows [0, end) usable: keys in rows, values in columns (a row per component). In whole tiles: a part's last step
// may reach beyond the panel, where weights are 0 and values must be numbers.
HWY_INLINE void require_bf16(KeyPanel& panel, std::int64_t end, std::int64_t head_size, const Bf16Scratch& scratch) {
  const Bf16Panel& to = panel.bf16();
  std::int64_t j = panel.filled();
  if (HWY_LIKELY(end <= j)) return;
  for (; j < end; j += kTilePairs) {
    const std::int64_t keys = std::min(panel.keys(), j + kTilePairs);
    for (std::int64_t r = j; r < keys; ++r)
      row_to_bf16(panel.key_row(r), head_size, to.k_stride, to.k + r * to.k_stride);
    values_to_columns(panel, j, head_size, row_stride(head_size), scratch.block);
  }
  panel.set_filled(j);
}

// The relative vectors, which a task's groups share.
HWY_INLINE void load_bf16_task(const HeadContext& head) {
  for (std::int64_t r = 0; r < head.labels; ++r) {
    row_to_bf16(head.relative_vectors + r * head.stride, head.stride, head.bf16_stride,
                head.relative_bf16 + r * head.bf16_stride);
  }
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
