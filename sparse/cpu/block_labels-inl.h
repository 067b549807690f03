// The labels of a key block's pairs, listed in the tiles or by distance, behind one interface. Highway's per-target
// include guard.
#if defined(SPARSE_CPU_BLOCK_LABELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_BLOCK_LABELS_INL_H_
#undef SPARSE_CPU_BLOCK_LABELS_INL_H_
#else
#define SPARSE_CPU_BLOCK_LABELS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "sparse/cpu/lanes-inl.h"
#include "sparse/cpu/tile_walk.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using IntVec = hn::Vec<IntTag>;

// Both kinds of labels have
//   code(j)             of column j: the label all its queries have, or from kFirstMixed on
//   lanes(code, v)      the labels of the queries of vector v, of such a column
//   lane(code, i)       the label of query i

// One code per column, one byte per pair of mixed columns.
struct ListedLabels {
  const std::uint32_t* label;  // [keys]: of the key block
  const std::uint8_t* mixed;   // [mixed columns, kGroup]: of the type

  HWY_INLINE std::uint32_t code(std::int64_t j) const { return label[j]; }
  HWY_INLINE const std::uint8_t* row(std::uint32_t code) const {
    return mixed + static_cast<std::int64_t>(code - kFirstMixed) * kGroup;
  }
  HWY_INLINE IntVec lanes(std::uint32_t code, int v) const {
    const IntTag di;
    const hn::Rebind<std::uint8_t, IntTag> du8;
    return hn::PromoteTo(di, hn::LoadU(du8, row(code) + v * kLanes));
  }
  HWY_INLINE std::int64_t lane(std::uint32_t code, int i) const { return row(code)[i]; }
};

// Codes and labels from tables by distance (distance_labels.h).
struct LabelsByDistance {
  const std::uint32_t* codes;  // [last + 1]
  const std::int32_t* of_lanes;
  std::int64_t first, last;  // place of column 0, if it had one; the last place

  HWY_INLINE std::uint32_t code(std::int64_t j) const {
    return codes[std::min(std::max<std::int64_t>(first + j, 0), last)];
  }
  HWY_INLINE const std::int32_t* row(std::uint32_t code) const { return of_lanes + (code - kFirstMixed); }
  HWY_INLINE IntVec lanes(std::uint32_t code, int v) const { return hn::LoadU(IntTag(), row(code) + v * kLanes); }
  HWY_INLINE std::int64_t lane(std::uint32_t code, int i) const { return row(code)[i]; }
};

// Calls body(labels) with the kind the block's type has: one copy of `body` for each.
template <typename Body>
HWY_INLINE void with_labels(const KeyBlock& block, const Body& body) {
  const TypeTiles& tiles = *block.tiles;
  if (!tiles.distance.used()) {
    return body(ListedLabels{tiles.label.data() + block.column, tiles.mixed.data()});
  }
  const DistanceLabels& distance = tiles.distance;
  body(LabelsByDistance{distance.codes.data(), distance.lanes.data(), block.distance - distance.first,
                        distance.codes.size() - 1});
}

// sums[label_ij][i] += values[j][i]. Runs of columns with one label are summed in registers first.
//   values [keys, kGroup], sums [labels, kGroup]
template <typename OfBlock>
HWY_INLINE void add_by_label(const OfBlock& labels, std::int64_t keys, const float* values, float* sums) {
  const FloatTag d;
  for (std::int64_t j = 0; j < keys;) {
    const std::uint32_t label = labels.code(j);
    if (label >= kFirstMixed) {
      const auto* const of_lanes = labels.row(label);  // [kGroup]
      for (int i = 0; i < kGroup; ++i) sums[of_lanes[i] * kGroup + i] += values[j * kGroup + i];
      ++j;
      continue;
    }
    float* const place = sums + label * kGroup;  // [kGroup]
    FloatVec sum[kGroupVectors];                 // [kGroup]
    for (int v = 0; v < kGroupVectors; ++v) sum[v] = hn::LoadU(d, place + v * kLanes);
    for (; j < keys && labels.code(j) == label; ++j) {
      for (int v = 0; v < kGroupVectors; ++v) sum[v] = hn::Add(sum[v], hn::LoadU(d, values + j * kGroup + v * kLanes));
    }
    for (int v = 0; v < kGroupVectors; ++v) hn::StoreU(sum[v], d, place + v * kLanes);
  }
}

// table[label_ij][i] of the queries of vector v in a column.   table [labels, kGroup]
template <typename OfBlock>
HWY_INLINE FloatVec look_up(const OfBlock& labels, const float* table, std::uint32_t code, int v) {
  const FloatTag d;
  const IntTag di;
  if (HWY_LIKELY(code < kFirstMixed)) return hn::LoadU(d, table + code * kGroup + v * kLanes);
  static_assert(kGroup == 1 << 4);
  const auto lane = hn::Iota(di, v * kLanes);
  return hn::GatherIndex(d, table, hn::Add(hn::ShiftLeft<4>(labels.lanes(code, v)), lane));
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
