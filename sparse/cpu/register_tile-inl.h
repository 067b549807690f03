// The three small products of every attention tile; all use one micro-kernel, the register tile.
//
// Scores are stored transposed: a column is one key against the kGroup queries of a group, queries in vector lanes. So
//   dot_products      s[j][i]   = sum_d x[d][i] y[j][d]     keys broadcast, queries in lanes (x transposed per group)
//   weighted_sum      o[i][d]  += sum_j w[j][i] y[j][d]     weights broadcast, components in lanes
//   outer_products    g[j][d]  += sum_i w[j][i] x[i][d]     weights broadcast, components in lanes
// need no transposed keys or values, softmax needs no sum across lanes, and all three use the same loop: broadcast a
// scalar of A, multiply it with vectors of B, add to accumulators in registers. Highway's per-target include guard.
#if defined(SPARSE_CPU_REGISTER_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_REGISTER_TILE_INL_H_
#undef SPARSE_CPU_REGISTER_TILE_INL_H_
#else
#define SPARSE_CPU_REGISTER_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "sparse/cpu/rows_ahead.h"
#include "sparse/visible_tiles.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, kGroup>;
using FloatVec = hn::Vec<FloatTag>;
inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(FloatTag()));
inline constexpr int kGroupVectors = kGroup / kLanes;  // vectors that hold one value per query of a group

// Rows of A in the register tile. 8 rows x 2 vectors are 16 accumulators: enough to hide the latency of a multiply-add,
// and few enough for the 32 registers of AVX-512; older instruction sets have 16 registers.
inline constexpr int kTileRows = kLanes == 16 ? 8 : 4;
inline constexpr int kTileVectors = 2;
static_assert(kRunStep % kTileRows == 0 && kGroup % kTileRows == 0);

// Unroll factor of the product loop. Where another thread shares the core, instruction issue is the bottleneck:
// unrolled four times, AVX2 reaches 74 to 82 GFLOP/s instead of 50 to 71, independent of the loop's alignment (98 in
// both cases if the core is not shared). With AVX-512 a step has twice the arithmetic.
inline constexpr int kTileSteps = kLanes == 16 ? 1 : 4;

// The operands of a register tile. Left: element (m, k) is at data[m*row + k*step] and is read one number at a time.
// Right and result: rows of contiguous numbers, `row` apart.
struct LeftOperand {
  const float* data;
  std::int64_t row, step;
};
struct RightOperand {
  const float* data;
  std::int64_t row;
};
struct TileResult {
  float* data;
  std::int64_t row;
};

// Whether products overwrite the result or are added to it.
enum class Sum { fresh, added };

// c[m][v] (+)= sum_{k < steps} a[m][k] * b[k][v]    kRows rows m, kVectors vectors v
template <int kRows, int kVectors, Sum kSum>
HWY_INLINE void register_tile(LeftOperand a, RightOperand b, TileResult c, std::int64_t steps) {
  const FloatTag d;
  // The accumulators: kRows x kVectors registers during the whole loop.
  FloatVec sum[kRows][kVectors];
  HWY_UNROLL(8)
  for (int m = 0; m < kRows; ++m) {
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) {
      sum[m][v] = kSum == Sum::added ? hn::LoadU(d, c.data + m * c.row + v * kLanes) : hn::Zero(d);
    }
  }
  HWY_UNROLL(kTileSteps)
  for (std::int64_t k = 0; k < steps; ++k) {
    FloatVec right[kVectors];
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) right[v] = hn::LoadU(d, b.data + k * b.row + v * kLanes);
    HWY_UNROLL(8)
    for (int m = 0; m < kRows; ++m) {
      // One broadcast serves kVectors multiply-adds and one load of B serves kRows, so loads do not limit the loop.
      const FloatVec left = hn::Set(d, a.data[m * a.row + k * a.step]);
      HWY_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) sum[m][v] = hn::MulAdd(left, right[v], sum[m][v]);
    }
  }
  HWY_UNROLL(8)
  for (int m = 0; m < kRows; ++m) {
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[m][v], d, c.data + m * c.row + v * kLanes);
  }
}

// The usual head size. With a compile-time stride address computations cost nothing, which makes outer_products, with
// only kGroup steps per tile, 15 % faster.
inline constexpr std::int64_t kUsualStride = 64;

// Rows of keys, values or a table: [count, stride], count a multiple of kRunStep.
struct KeyRowsOperand {
  const float* data;
  std::int64_t stride, count;
  ColumnsAhead ahead = {};  // prefetched a few lines at a time during the products
};

// s[j][i] = sum_d x[d][i] * y[j][d].   x [D, kGroup], y [keys, stride], s [keys, kGroup]
HWY_INLINE void dot_products(const float* x, KeyRowsOperand y, std::int64_t head_size, float* s) {
  for (std::int64_t j = 0; j < y.count; j += kTileRows) {
    y.ahead.prefetch(kTileRows);
    register_tile<kTileRows, kGroupVectors, Sum::fresh>({y.data + j * y.stride, y.stride, 1}, {x, kGroup},
                                                        {s + j * kGroup, kGroup}, head_size);
  }
}

// Keys [begin, end) of a weighted sum.
struct KeySpan {
  std::int64_t begin, end;
};

// Without the leading and trailing keys that none of the queries [first, first + rows) sees: in a window only some
// queries see the first and last keys of a run, and the others have weight 0 there.   visible [keys] or null
HWY_INLINE KeySpan seen_keys(const std::uint16_t* visible, std::int64_t keys, int first, int rows) {
  KeySpan span{0, keys};
  if (visible == nullptr) return span;
  const unsigned queries = ((1u << rows) - 1) << first;
  while (span.begin < span.end && (visible[span.begin] & queries) == 0) ++span.begin;
  while (span.begin < span.end && (visible[span.end - 1] & queries) == 0) --span.end;
  return span;
}

// Weights w [keys, kGroup] and rows y [keys, stride] of a weighted sum, and its result o [kGroup, stride].
struct WeightedRows {
  const float *w, *y;
  std::int64_t stride;
  float* o;

  // o[i][d] += sum_j w[j][i] * y[j][d] for i in [first, first + kRows), d in [column, column + kVectors * kLanes).
  // Rows of queries are rows of A: consecutive floats of a column, one column per step.
  template <int kRows, int kVectors>
  HWY_INLINE void add(const KeySpan& keys, int first, std::int64_t column) const {
    register_tile<kRows, kVectors, Sum::added>({w + keys.begin * kGroup + first, 1, kGroup},
                                               {y + keys.begin * stride + column, stride},
                                               {o + first * stride + column, stride}, keys.end - keys.begin);
  }
};

// With vectors of fewer than 16 lanes and more than this many keys, weighted_sum uses tiles of 6, 5 and 5 queries: three
// passes over the weights and a part of the values, which then exceed the first-level cache, instead of four. The tile
// alone, GFLOP/s on AMD EPYC (family 25, AVX2), four queries and six: 432 keys 83 and 98, 200 keys 91 and 101, 32 keys
// 100 and 89; if another thread shares the core, 432 keys 71 and 87.
inline constexpr std::int64_t kFewKeys = 64;

HWY_INLINE void weighted_sum_of_many(const WeightedRows& rows, const std::uint16_t* visible, std::int64_t keys) {
  const KeySpan six = seen_keys(visible, keys, 0, 6);
  const KeySpan five = seen_keys(visible, keys, 6, 5), last = seen_keys(visible, keys, 11, 5);
  static_assert(kGroup == 16);
  for (std::int64_t d = 0; d < rows.stride; d += kTileVectors * kLanes) {
    rows.add<6, kTileVectors>(six, 0, d);
    rows.add<5, kTileVectors>(five, 6, d);
    rows.add<5, kTileVectors>(last, 11, d);
  }
}

// o[i][d] += sum_j w[j][i] * y[j][d].   w [keys, kGroup], y [keys, stride], o [kGroup, stride]
// `visible` [keys], if given, says which queries see a key.
HWY_INLINE void weighted_sum(const float* w, const float* y, std::int64_t stride, std::int64_t keys,
                             const std::uint16_t* visible, float* o) {
  const WeightedRows rows{w, y, stride, o};
  // Strides are multiples of 16: with 8 lanes and two vectors nothing remains, with 16 lanes at most one vector.
  if (kLanes < 16 && keys > kFewKeys) return weighted_sum_of_many(rows, visible, keys);
  for (int i = 0; i < kGroup; i += kTileRows) {
    const KeySpan seen = seen_keys(visible, keys, i, kTileRows);
    std::int64_t d = 0;
    for (; d + kTileVectors * kLanes <= stride; d += kTileVectors * kLanes) {
      rows.add<kTileRows, kTileVectors>(seen, i, d);
    }
    for (; d < stride; d += kLanes) rows.add<kTileRows, 1>(seen, i, d);
  }
}

// An inlined function with the stride as an argument, which is a constant in one of the two calls below.
HWY_INLINE void outer_products_with(const float* w, const float* x, std::int64_t stride, std::int64_t keys, float* g) {
  for (std::int64_t j = 0; j < keys; j += kTileRows) {
    std::int64_t d = 0;
    for (; d + kTileVectors * kLanes <= stride; d += kTileVectors * kLanes) {
      register_tile<kTileRows, kTileVectors, Sum::added>({w + j * kGroup, kGroup, 1}, {x + d, stride},
                                                         {g + j * stride + d, stride}, kGroup);
    }
    for (; d < stride; d += kLanes) {
      register_tile<kTileRows, 1, Sum::added>({w + j * kGroup, kGroup, 1}, {x + d, stride},
                                              {g + j * stride + d, stride}, kGroup);
    }
  }
}

// g[j][d] += sum_i w[j][i] * x[i][d].   w [keys, kGroup], x [kGroup, stride], g [keys, stride]
HWY_INLINE void outer_products(const float* w, const float* x, std::int64_t stride, std::int64_t keys, float* g) {
  if (stride == kUsualStride) {
    outer_products_with(w, x, kUsualStride, keys, g);
  } else {
    outer_products_with(w, x, stride, keys, g);
  }
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
