// Tables, and sums for their gradients, in the order of the list of distances (distance_labels.h). In the list the
// labels of a column are kGroup consecutive entries: lanes[place + i] for query i. This avoids gathers and
// scatters of single pairs.
//
//   a number for each label     numbers[n] = number of label lanes[n]             a column reads numbers[place …]
//   a row of kGroup queries     rows[n][i] = table[lanes[n + i]][i] (skewed)      a column reads rows[place]
//
// The first and last labels are repeated in the list, so that columns beyond its ends use the first or last place.
// Highway's per-target include guard.
#if defined(SPARSE_CPU_DISTANCE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_DISTANCE_ROWS_INL_H_
#undef SPARSE_CPU_DISTANCE_ROWS_INL_H_
#else
#define SPARSE_CPU_DISTANCE_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "sparse/cpu/block_labels-inl.h"
#include "sparse/cpu/lanes-inl.h"
#include "sparse/cpu/register_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Number of rows that skewing reads or writes beyond the places of a range, on either side.
inline constexpr std::int64_t kSkew = kGroup - 1;

// Places [begin, end) of a list.
struct PlaceRange {
  std::int64_t begin = 0, end = 0;
};

// Lanes whose number in base 4 has `digit` as its lower (place 0) or higher (place 1) digit.
HWY_INLINE FloatMask lanes_with(int v, int place, int digit) {
  const IntTag di;
  const auto lane = hn::Iota(di, v * kLanes);
  const auto own = hn::And(place == 0 ? lane : hn::ShiftRight<2>(lane), hn::Set(di, 3));
  return hn::RebindMask(FloatTag(), hn::Eq(own, hn::Set(di, digit)));
}

// rows[n][i] = table[lanes[n + i]][i] for the places of a range, in two rounds, each of which merges four rows by lane:
// first for the lower two bits of i, then for the higher two.   table [labels, kGroup], rows [places + kSkew, kGroup]
HWY_NOINLINE inline void skew_rows(const float* table, const std::int32_t* lanes, const PlaceRange& range,
                                   float* rows) {
  const FloatTag d;
  if (range.begin == range.end) return;
  for (int v = 0; v < kGroupVectors; ++v) {
    const FloatMask one = lanes_with(v, 0, 1), two = lanes_with(v, 0, 2), three = lanes_with(v, 0, 3);
    const auto row = [&](std::int64_t n)
                         HWY_ATTR { return hn::LoadU(d, table + std::int64_t{lanes[n]} * kGroup + v * kLanes); };
    for (std::int64_t n = range.begin; n < range.end + kGroup - 4; ++n) {
      FloatVec x = hn::IfThenElse(one, row(n + 1), row(n));
      x = hn::IfThenElse(two, row(n + 2), x);
      hn::StoreU(hn::IfThenElse(three, row(n + 3), x), d, rows + n * kGroup + v * kLanes);
    }
  }
  for (int v = 0; v < kGroupVectors; ++v) {
    const FloatMask one = lanes_with(v, 1, 1), two = lanes_with(v, 1, 2), three = lanes_with(v, 1, 3);
    for (std::int64_t n = range.begin; n < range.end; ++n) {
      float* const own = rows + n * kGroup + v * kLanes;  // [kLanes]
      FloatVec x = hn::IfThenElse(one, hn::LoadU(d, own + 4 * kGroup), hn::LoadU(d, own));
      x = hn::IfThenElse(two, hn::LoadU(d, own + 8 * kGroup), x);
      hn::StoreU(hn::IfThenElse(three, hn::LoadU(d, own + 12 * kGroup), x), d, own);
    }
  }
}

// Zeroes the sums of a range's places.   rows [kSkew + places + kSkew, kGroup], pointing to place 0
HWY_INLINE void clear_skewed(const PlaceRange& range, float* rows) {
  std::fill_n(rows + (range.begin - kSkew) * kGroup, (range.end - range.begin + 2 * kSkew) * kGroup, 0.0f);
}

// The transposed operation of skew_rows: table[lanes[n + i]][i] += rows[n][i]. Call clear_skewed before summing into
// rows; this function overwrites them.
HWY_NOINLINE inline void add_skewed(float* rows, const std::int32_t* lanes, const PlaceRange& range, float* table) {
  const FloatTag d;
  if (range.begin == range.end) return;
  // In descending order, so that the lower rows are still unchanged when they are read.
  for (int v = 0; v < kGroupVectors; ++v) {
    const FloatMask one = lanes_with(v, 0, 1), two = lanes_with(v, 0, 2), three = lanes_with(v, 0, 3);
    for (std::int64_t n = range.end + kSkew - 1; n >= range.begin; --n) {
      float* const own = rows + n * kGroup + v * kLanes;  // [kLanes]
      FloatVec x = hn::IfThenElse(one, hn::LoadU(d, own - kGroup), hn::LoadU(d, own));
      x = hn::IfThenElse(two, hn::LoadU(d, own - 2 * kGroup), x);
      hn::StoreU(hn::IfThenElse(three, hn::LoadU(d, own - 3 * kGroup), x), d, own);
    }
  }
  for (int v = 0; v < kGroupVectors; ++v) {
    const FloatMask one = lanes_with(v, 1, 1), two = lanes_with(v, 1, 2), three = lanes_with(v, 1, 3);
    for (std::int64_t n = range.end + kSkew - 1; n >= range.begin; --n) {
      const float* const own = rows + n * kGroup + v * kLanes;  // [kLanes]
      FloatVec x = hn::IfThenElse(one, hn::LoadU(d, own - 4 * kGroup), hn::LoadU(d, own));
      x = hn::IfThenElse(two, hn::LoadU(d, own - 8 * kGroup), x);
      x = hn::IfThenElse(three, hn::LoadU(d, own - 12 * kGroup), x);
      float* const to = table + std::int64_t{lanes[n]} * kGroup + v * kLanes;  // [kLanes]
      hn::StoreU(hn::Add(hn::LoadU(d, to), x), d, to);
    }
  }
}

// to += the sum of `count` columns.   columns [count, kGroup], to [kGroup]
HWY_INLINE void add_run(const float* columns, std::int64_t count, float* to) {
  const FloatTag d;
  if (count <= 0) return;
  FloatVec sum[kGroupVectors];  // [kGroup]
  for (int v = 0; v < kGroupVectors; ++v) sum[v] = hn::LoadU(d, to + v * kLanes);
  for (std::int64_t j = 0; j < count; ++j) {
    for (int v = 0; v < kGroupVectors; ++v) sum[v] = hn::Add(sum[v], hn::LoadU(d, columns + j * kGroup + v * kLanes));
  }
  for (int v = 0; v < kGroupVectors; ++v) hn::StoreU(sum[v], d, to + v * kLanes);
}

// rows[place(j)] += columns[j].   columns [keys, kGroup], rows: skewed
HWY_INLINE void add_to_places(const LabelsByDistance& labels, std::int64_t keys, const float* columns, float* rows) {
  const auto [begin, end] = labels.between(keys);
  add_run(columns, begin, rows + labels.place(0) * kGroup);
  for (std::int64_t j = begin; j < end; ++j) add_run(columns + j * kGroup, 1, rows + labels.place(j) * kGroup);
  add_run(columns + end * kGroup, keys - end, rows + labels.place(keys - 1) * kGroup);
}

// sums[place(j) + i] += x[j][i] y[j][i].   x, y [keys, kGroup], sums [kGroup + places], pointing to place 0
// Columns at adjacent places overlap: kLanes columns are rotated so that the lanes of one place are aligned and can be
// added as vectors.
HWY_NOINLINE inline void add_products_to_places(const LabelsByDistance& labels, std::int64_t keys, const float* x,
                                                const float* y, float* sums) {
  const FloatTag d;
  const IntTag di;
  const auto [begin, end] = labels.between(keys);
  const auto add = [&](FloatVec sum, float* to) HWY_ATTR { hn::StoreU(hn::Add(hn::LoadU(d, to), sum), d, to); };
  for (std::int64_t first = 0; first < keys;) {
    const bool inner = first >= begin && first < end;
    const std::int64_t stop = first < begin ? begin : inner ? std::min<std::int64_t>(first + kLanes, end) : keys;
    float* const to = sums + labels.place(first);  // [kGroup]
    for (int v = 0; v < kGroupVectors; ++v) {
      FloatVec own = hn::Zero(d), below = hn::Zero(d);
      for (std::int64_t j = first; j < stop; ++j) {
        const std::int64_t at = j * kGroup + v * kLanes;
        const FloatVec product = hn::Mul(hn::LoadU(d, x + at), hn::LoadU(d, y + at));
        // Column c is c places before the first one: its lane l belongs to place l - c.
        const auto c = static_cast<std::int32_t>(inner ? j - first : 0);
        const auto turn = hn::And(hn::Add(hn::Iota(di, 0), hn::Set(di, c)), hn::Set(di, kLanes - 1));
        const FloatVec turned = hn::TableLookupLanes(product, hn::IndicesFromVec(d, turn));
        const FloatMask here = hn::FirstN(d, static_cast<std::size_t>(kLanes - c));
        own = hn::Add(own, hn::IfThenElseZero(here, turned));
        below = hn::Add(below, hn::IfThenZeroElse(here, turned));
      }
      add(own, to + v * kLanes);
      if (inner) add(below, to + (v - 1) * kLanes);
    }
    first = stop;
  }
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
