// The labels of a key block's pairs, listed in the tiles or by distance, with the same interface. Highway's per-target
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
#include <utility>

#include "sparse/cpu/lanes-inl.h"
#include "sparse/cpu/tile_walk.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using IntVec = hn::Vec<IntTag>;

// Both kinds of labels have
//   code(j)             of column j: the label of all its queries, or a value from kFirstMixed on
//   lanes(code, v)      with such a value: the labels of the queries of vector v
//   lane(code, i)       with such a value: the label of query i

// One code per column, one byte per pair of mixed columns.
struct ListedLabels {
  const std::uint32_t* label = nullptr;  // [keys]: of the key block
  const std::uint8_t* mixed = nullptr;   // [mixed columns, kGroup]: of the type

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
  const std::uint32_t* codes = nullptr;  // [last + 1]
  const std::int32_t* of_lanes = nullptr;
  std::int64_t first = 0, last = 0;  // index of column 0 in codes before clipping; the last index

  HWY_INLINE std::uint32_t code(std::int64_t j) const {
    return codes[std::min(std::max<std::int64_t>(first + j, 0), last)];
  }
  HWY_INLINE const std::int32_t* row(std::uint32_t code) const { return of_lanes + (code - kFirstMixed); }
  HWY_INLINE IntVec lanes(std::uint32_t code, int v) const { return hn::LoadU(IntTag(), row(code) + v * kLanes); }
  HWY_INLINE std::int64_t lane(std::uint32_t code, int i) const { return row(code)[i]; }

  // Place of column j's labels in the list of_lanes, also for columns with one label.
  HWY_INLINE std::int64_t place(std::int64_t j) const {
    return last - std::min(std::max<std::int64_t>(first + j, 0), last);
  }
  // Columns [begin, end) of `keys` have distinct places, each smaller by one; all columns before them have the last
  // place, all columns after them the first place.
  HWY_INLINE std::pair<std::int64_t, std::int64_t> between(std::int64_t keys) const {
    const std::int64_t begin = std::min(std::max<std::int64_t>(1 - first, 0), keys);
    return {begin, std::min(std::max(last - first, begin), keys)};
  }
};

// Either kind, tested for every column: for loops whose work per column is more than one look-up.
struct AnyLabels {
  bool is_listed;
  ListedLabels listed;
  LabelsByDistance by_distance;

  HWY_INLINE std::uint32_t code(std::int64_t j) const { return is_listed ? listed.code(j) : by_distance.code(j); }
  HWY_INLINE IntVec lanes(std::uint32_t code, int v) const {
    return is_listed ? listed.lanes(code, v) : by_distance.lanes(code, v);
  }
  HWY_INLINE std::int64_t lane(std::uint32_t code, int i) const {
    return is_listed ? listed.lane(code, i) : by_distance.lane(code, i);
  }
};

HWY_INLINE ListedLabels listed_labels(const KeyBlock& block) {
  return {block.tiles->label.data() + block.column, block.tiles->mixed.data()};
}

HWY_INLINE LabelsByDistance labels_by_distance(const KeyBlock& block) {
  const DistanceLabels& distance = block.tiles->distance;
  return {distance.codes.data(), distance.lanes.data(), block.distance - distance.first, distance.codes.size() - 1};
}

// The labels of a block whose type is labelled.
HWY_INLINE AnyLabels labels_of(const KeyBlock& block) {
  const bool is_listed = !block.tiles->distance.used();
  return {is_listed, is_listed ? listed_labels(block) : ListedLabels{},
          is_listed ? LabelsByDistance{} : labels_by_distance(block)};
}

// sums[label_ij][i] += values[j][i]. Runs of columns with one label are summed in registers first.
//   values [keys, kGroup], sums [labels, kGroup]
template <typename OfBlock>
HWY_INLINE void add_by_label(const OfBlock& labels, std::int64_t keys, const float* values, float* sums) {
  const FloatTag d;
  for (std::int64_t j = 0; j < keys;) {
    const std::uint32_t label = labels.code(j);
    if (label >= kFirstMixed) {
      for (int i = 0; i < kGroup; ++i) sums[labels.lane(label, i) * kGroup + i] += values[j * kGroup + i];
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
