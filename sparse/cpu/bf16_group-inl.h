// The forward pass of a group with bf16 operands: keys and values of a task rounded once, products by Bf16Tiles,
// softmax in fp32 as in group-inl.h. Highway's per-target include guard.
#if defined(SPARSE_CPU_BF16_GROUP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_BF16_GROUP_INL_H_
#undef SPARSE_CPU_BF16_GROUP_INL_H_
#else
#define SPARSE_CPU_BF16_GROUP_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>

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

// rows [count, stride] -> bf16 [count, bf16_stride], zero beyond stride.
HWY_INLINE void rows_to_bf16(const float* rows, std::int64_t stride, std::int64_t count, std::int64_t bf16_stride,
                             std::uint16_t* to) {
  const FloatTag d;
  const IntTag di;
  const hn::Rebind<std::uint16_t, FloatTag> narrow;
  for (std::int64_t r = 0; r < count; ++r, rows += stride, to += bf16_stride) {
    for (std::int64_t c = 0; c < stride; c += kLanes) {
      const auto bits = hn::BitCast(di, etc::HWY_NAMESPACE::bf16_bits(d, hn::LoadU(d, rows + c)));
      hn::StoreU(hn::DemoteTo(narrow, bits), narrow, to + c);
    }
    std::fill(to + stride, to + bf16_stride, std::uint16_t{0});
  }
}

// lanes [stride, kGroup] -> pairs [bf16_stride/2, kGroup, 2], zero beyond stride (which is even).
HWY_INLINE void lanes_to_pairs(const float* lanes, std::int64_t stride, std::int64_t bf16_stride,
                               std::uint16_t* pairs) {
  const FloatTag d;
  const UintTag du;
  auto* to = reinterpret_cast<std::uint32_t*>(pairs);
  for (std::int64_t c = 0; c < stride; c += 2, to += kGroup) {
    for (int p = 0; p < kParts; ++p) {
      const float* from = lanes + c * kGroup + p * kLanes;
      hn::StoreU(bf16_pairs(hn::LoadU(d, from), hn::LoadU(d, from + kGroup)), du, to + p * kLanes);
    }
  }
  std::fill_n(to, (bf16_stride - stride) / 2 * kGroup, 0u);
}

// Copies all of a panel's keys and values as bf16: keys in rows, values in columns (a row per component).
HWY_INLINE void fill_bf16_panel(const KeyPanel& panel, std::int64_t head_size, const Bf16Scratch& scratch) {
  const FloatTag d;
  const UintTag du;
  const Bf16Panel& to = panel.bf16();
  const std::int64_t keys = panel.keys(), stride = row_stride(head_size);
  const std::int64_t padded = (keys + kTilePairs - 1) / kTilePairs * kTilePairs;
  auto* pairs = reinterpret_cast<std::uint32_t*>(scratch.value_pairs);  // [kGroup, stride]: a row for two keys
  for (std::int64_t j = 0; j < padded; j += kTilePairs) {
    const std::int64_t some = std::min(kTilePairs, keys - j);
    panel.prefetch(j + kTilePairs, j + 2 * kTilePairs);
    panel.copy_keys(j, some, scratch.rows);
    rows_to_bf16(scratch.rows, stride, some, to.k_stride, to.k + j * to.k_stride);
    panel.copy_values(j, some, scratch.rows);
    std::fill(scratch.rows + some * stride, scratch.rows + kTilePairs * stride, 0.0f);
    for (std::int64_t pair = 0; pair < kGroup; ++pair) {
      const float* first = scratch.rows + 2 * pair * stride;
      for (std::int64_t c = 0; c < stride; c += kLanes) {
        hn::StoreU(bf16_pairs(hn::LoadU(d, first + c), hn::LoadU(d, first + stride + c)), du,
                   pairs + pair * stride + c);
      }
    }
    transpose_group(scratch.value_pairs, stride, scratch.value_lanes);
    for (std::int64_t c = 0; c < stride; ++c) {
      std::memcpy(to.v + c * to.v_stride + j, scratch.value_lanes + c * kGroup, kTilePairs * sizeof(std::uint16_t));
    }
  }
  // A part's last step may reach beyond the panel: the weights are 0 there, the values must be numbers.
  for (std::int64_t c = 0; c < stride; ++c) {
    std::fill(to.v + c * to.v_stride + padded, to.v + (c + 1) * to.v_stride, std::uint16_t{0});
  }
}

// Copies what a task's groups share: relative vectors, all of `panels`.
HWY_INLINE void load_bf16_task(const HeadContext& head, const GroupScratch& scratch,
                               std::initializer_list<const KeyPanel*> panels) {
  rows_to_bf16(head.relative_vectors, head.stride, head.labels, head.bf16_stride, head.relative_bf16);
  for (const KeyPanel* panel : panels) fill_bf16_panel(*panel, head.head_size, scratch.bf16);
}

// The group's queries; q_lanes must be loaded.
HWY_INLINE void load_bf16_group(const HeadContext& head, const GroupScratch& scratch) {
  lanes_to_pairs(scratch.q_lanes, head.stride, head.bf16_stride, scratch.bf16.q_pairs);
}

// Powers of one part's logits (base 2), less `shift`, as bf16 weights, zero up to a whole step; their sum before
// rounding is added to `total`.
HWY_INLINE void bf16_powers(const float* logits, std::int64_t keys, const FloatVec* shift, FloatVec* total,
                            std::uint16_t* w_pairs) {
  const FloatTag d;
  const UintTag du;
  auto* to = reinterpret_cast<std::uint32_t*>(w_pairs);
  FloatVec sum[kParts];
  for (int p = 0; p < kParts; ++p) sum[p] = total[p];
  // Powers are not NaN unless the model is, and rounding half away from zero is as good for weights.
  const UintVec half = hn::Set(du, 0x8000u), upper = hn::Set(du, 0xFFFF0000u);
  for (std::int64_t j = 0; j < keys; j += 2, to += kGroup) {
    for (int p = 0; p < kParts; ++p) {
      const float* place = logits + j * kGroup + p * kLanes;
      const FloatVec first = power_of_two(hn::Sub(hn::LoadU(d, place), shift[p]));
      const FloatVec second = power_of_two(hn::Sub(hn::LoadU(d, place + kGroup), shift[p]));
      sum[p] = hn::Add(sum[p], hn::Add(first, second));
      const UintVec low = hn::ShiftRight<16>(hn::Add(hn::BitCast(du, first), half));
      const UintVec high = hn::And(hn::Add(hn::BitCast(du, second), half), upper);
      hn::StoreU(hn::Or(low, high), du, to + p * kLanes);
    }
  }
  for (int p = 0; p < kParts; ++p) total[p] = sum[p];
  const std::int64_t rest = (kTilePairs - keys % kTilePairs) % kTilePairs;
  std::fill_n(to, rest / 2 * kGroup, 0u);
}

// scratch.out [kGroup, stride] = columns [stride, kGroup] turned.
HWY_INLINE void turn_output(const float* columns, std::int64_t stride, float* lanes, float* out) {
  for (std::int64_t c = 0; c < stride; c += kGroup) {
    transpose_group(columns + c * kGroup, kGroup, lanes);
    for (std::int64_t i = 0; i < kGroup; ++i) std::copy_n(lanes + i * kGroup, kGroup, out + i * stride + c);
  }
}

// Passes 2 and 3 of forward_group: weights of all parts and their products with the values. Logits in scratch.p.
HWY_INLINE void bf16_weighted_values(const HeadContext& head, const Part* parts, std::int64_t count,
                                     const GroupScratch& scratch, const FloatVec* shift, FloatVec* total) {
  const Bf16Scratch& own = scratch.bf16;
  std::fill_n(own.out_columns, head.stride * kGroup, 0.0f);
  const float* logits = scratch.p;
  for (std::int64_t n = 0; n < count; logits += parts[n].keys * kGroup, ++n) {
    const Part& part = parts[n];
    const Bf16Panel& panel = part.panel->bf16();
    bf16_powers(logits, part.keys, shift, total, own.w_pairs);
    head.bf16->weighted_sum(own.w_pairs, panel.v + part.row, panel.v_stride, part.keys, head.stride, own.out_columns);
  }
  turn_output(own.out_columns, head.stride, own.value_lanes, scratch.out);
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
