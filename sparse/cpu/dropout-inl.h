// Dropout of a key block's weights: the bits of its pairs, and weights set to zero. Highway's per-target include guard.
#if defined(SPARSE_CPU_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_DROPOUT_INL_H_
#undef SPARSE_CPU_DROPOUT_INL_H_
#else
#define SPARSE_CPU_DROPOUT_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "sparse/cpu/lanes-inl.h"
#include "sparse/cpu/tile_walk.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Dropout bits of a key block's pairs.
HWY_INLINE void keep_bits_of_block(const HeadContext& head, const KeyBlock& block, std::int64_t first_query,
                                   std::uint16_t* keep) {
  // Keys are numbered across both key sets, so that no two pairs of a query share a bit.
  const auto first_key = static_cast<std::uint32_t>(block.panel->dropout_index(block.row));
  dropout_keep_bits({.stream = head.dropout_key,
                     .threshold = head.dropout_threshold,
                     .head = head.dropout_head,
                     .first_query = static_cast<std::uint32_t>(first_query),
                     .first_key = first_key,
                     .keys = block.keys},
                    keep);
}

// Dropout of a key block's weights [keys, kGroup], in place.
HWY_INLINE void drop_weights(const HeadContext& head, const KeyBlock& block, std::int64_t first_query,
                             std::uint16_t* keep, float* weights) {
  const FloatTag d;
  // First all bits, which are generated four keys at a time, then the mask.
  keep_bits_of_block(head, block, first_query, keep);
  for (std::int64_t j = 0; j < block.keys; ++j) {
    for (int v = 0; v < kGroupVectors; ++v) {
      float* place = weights + j * kGroup + v * kLanes;  // [kLanes]: key j
      hn::StoreU(hn::IfThenElseZero(lanes_of(keep[j], v), hn::LoadU(d, place)), d, place);
    }
  }
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
