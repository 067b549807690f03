// The keys with the largest probabilities of each query of a group. Highway's per-target include guard.
#if defined(SPARSE_CPU_STATISTICS_TOP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_STATISTICS_TOP_INL_H_
#undef SPARSE_CPU_STATISTICS_TOP_INL_H_
#else
#define SPARSE_CPU_STATISTICS_TOP_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "sparse/attention_statistics.h"
#include "sparse/cpu/lanes-inl.h"
#include "sparse/cpu/statistics-inl.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Probabilities of pairs that are not visible: less than any other.
inline constexpr float kNotSeen = -1.0f;

// p of one column for the queries of vector v; kNotSeen where the key is not visible.   p [columns, kGroup]
HWY_INLINE FloatVec seen_probabilities(const float* p, std::uint16_t visible, int v) {
  const FloatTag d;
  return hn::IfThenElse(lanes_of(visible, v), hn::LoadU(d, p + v * kLanes), hn::Set(d, kNotSeen));
}

// Calls body(block, j, p) for every column of a group.   p [columns, kGroup]; of the column in the call
template <typename Body>
HWY_INLINE void for_columns(const GroupBlocks& of, const float* p, const Body& body) {
  for (std::int64_t n = 0; n < of.count; ++n) {
    for (std::int64_t j = 0; j < of.blocks[n].keys; ++j, p += kGroup) body(of.blocks[n], j, p);
  }
}

HWY_INLINE std::uint16_t visible_of(const KeyBlock& block, std::int64_t j) {
  return block.tiles->visible[static_cast<std::size_t>(block.column + j)];
}

// The `kept` largest probabilities of each query in descending order, kNotSeen where fewer keys are visible: every
// column is inserted for all queries at once, two instructions per place.   greatest [kept, kGroup]
inline void find_greatest(const GroupBlocks& of, const float* p, std::int64_t kept, float* greatest) {
  const FloatTag d;
  std::fill_n(greatest, kept * kGroup, kNotSeen);
  const float* const least = greatest + (kept - 1) * kGroup;  // [kGroup]
  for_columns(of, p, [&](const KeyBlock& block, std::int64_t j, const float* column) HWY_ATTR {
    for (int v = 0; v < kGroupVectors; ++v) {
      FloatVec x = seen_probabilities(column, visible_of(block, j), v);
      if (hn::AllFalse(d, hn::Gt(x, hn::LoadU(d, least + v * kLanes)))) continue;
      for (std::int64_t k = 0; k < kept; ++k) {
        float* const place = greatest + k * kGroup + v * kLanes;  // [kLanes]
        const FloatVec before = hn::LoadU(d, place);
        hn::StoreU(hn::Max(before, x), d, place);
        x = hn::Min(before, x);
      }
    }
  });
}

// Bits of the queries whose probability is at least `least`.   least [kGroup]
HWY_INLINE std::uint32_t reaching(const float* p, std::uint16_t visible, const float* least) {
  const FloatTag d;
  std::uint32_t queries = 0;
  for (int v = 0; v < kGroupVectors; ++v) {
    const FloatMask reached = hn::Ge(seen_probabilities(p, visible, v), hn::LoadU(d, least + v * kLanes));
    std::uint8_t bytes[8] = {};
    hn::StoreMaskBits(d, reached, bytes);
    queries |= (bytes[0] | static_cast<std::uint32_t>(bytes[1]) << 8) << (v * kLanes);
  }
  return queries & visible;
}

// The largest p of each query, in descending order; of equal values the first. Two passes: the values alone, then the
// pairs that reach the least of them.
//   logits [columns, kGroup] own and used; top [queries, kept]; greatest [kept, kGroup]: scratch
struct TopPairs {
  std::int64_t kept;
  const float *p, *own, *used;
  float* greatest;
};
inline void take_top(const TopPairs& pairs, std::int64_t queries, const GroupBlocks& of, TopKey* top) {
  const std::int64_t kept = pairs.kept;
  std::fill_n(top, queries * kept, TopKey());
  find_greatest(of, pairs.p, kept, pairs.greatest);
  const float* const least = pairs.greatest + (kept - 1) * kGroup;  // [kGroup]
  std::int64_t equal[kGroup];                                       // places left for pairs that equal it
  std::int64_t count[kGroup] = {};
  for (std::int64_t i = 0; i < kGroup; ++i) {
    equal[i] = kept;
    for (std::int64_t k = 0; k < kept; ++k) equal[i] -= pairs.greatest[k * kGroup + i] > least[i];
  }
  for_columns(of, pairs.p, [&](const KeyBlock& block, std::int64_t j, const float* column) HWY_ATTR {
    const auto key = static_cast<std::int32_t>(block.panel->first_key() + block.row + j);
    for (std::uint32_t left = reaching(column, visible_of(block, j), least); left != 0; left &= left - 1) {
      const int i = std::countr_zero(left);
      const float p = column[i];
      if (p == least[i] && equal[i]-- <= 0) continue;
      TopKey* const list = top + i * kept;  // [kept]
      std::int64_t place = count[i]++;
      for (; place > 0 && list[place - 1].probability < p; --place) list[place] = list[place - 1];
      const std::int64_t at = column + i - pairs.p;
      list[place] = {key, block.set, p, pairs.own[at], pairs.used[at]};
    }
  });
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
