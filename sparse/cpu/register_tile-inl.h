// The three small products every attention tile is made of, all on one register tile.
//
// Scores live transposed: a column is one key against the kGroup queries of a group, queries in vector lanes. So
//   dot_products      s[j][i]   = sum_d x[d][i] y[j][d]     keys broadcast, queries in lanes (x turned once a group)
//   weighted_sum      o[i][d]  += sum_j w[j][i] y[j][d]     weights broadcast, components in lanes
//   outer_products    g[j][d]  += sum_i w[j][i] x[i][d]     weights broadcast, components in lanes
// need no transposed keys or values, softmax needs no sum across lanes, and all three are the same loop: broadcast a
// scalar of A, multiply with vectors of B, add to accumulators in registers. Highway's per-target include guard.
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

// Rows of A kept in registers. 8 rows x 2 vectors are 16 accumulators: enough to hide the latency of a multiply-add,
// and few enough for the 32 registers of AVX-512; the older sets have 16 registers.
inline constexpr int kTileRows = kLanes == 16 ? 8 : 4;
inline constexpr int kTileVectors = 2;
static_assert(kRunStep % kTileRows == 0 && kGroup % kTileRows == 0);

// Steps of the products' loop in one turn of it. Where another thread shares the core, instructions are what it has too few
// of: without counting three steps of four, and wherever the loop lies, AVX2 makes 74 to 82 GFLOP/s in place of 50 to 71 (alone
// 98 either way). With AVX-512 a step has twice the arithmetic.
inline constexpr int kTileSteps = kLanes == 16 ? 1 : 4;

// The operands of a register tile. Left: element (m, k) at data[m*row + k*step], one number of it at a time; right and
// result: rows of neighbouring numbers, `row` apart.
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

// What happens to what the result holds already.
enum class Sum { fresh, added };

// c[m][v] (+)= sum_{k < steps} a[m][k] * b[k][v]    kRows rows m, kVectors vectors v
template <int kRows, int kVectors, Sum kSum>
HWY_INLINE void register_tile(LeftOperand a, RightOperand b, TileResult c, std::int64_t steps) {
  const FloatTag d;
  // The accumulators: kRows x kVectors registers, alive over the whole loop.
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
      // One broadcast feeds kVectors multiply-adds, one load of B feeds kRows of them: loads are not what limits the
      // loop.
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

// The usual head size: with a stride known at compile time addresses cost nothing, which outer_products, having only
// kGroup steps per tile, gains 15 % from.
inline constexpr std::int64_t kUsualStride = 64;

// Rows of keys, values or a table: [count, stride], count a multiple of kRunStep.
struct KeyRowsOperand {
  const float* data;
  std::int64_t stride, count;
  ColumnsAhead ahead = {};  // asked for a few lines at a time while rows are multiplied, which the products hide
};

// s[j][i] = sum_d x[d][i] * y[j][d].   x [D, kGroup], y [keys, stride], s [keys, kGroup]
HWY_INLINE void dot_products(const float* x, KeyRowsOperand y, std::int64_t head_size, float* s) {
  for (std::int64_t j = 0; j < y.count; j += kTileRows) {
    y.ahead.ask(kTileRows);
    register_tile<kTileRows, kGroupVectors, Sum::fresh>({y.data + j * y.stride, y.stride, 1}, {x, kGroup},
                                                        {s + j * kGroup, kGroup}, head_size);
  }
}

// o[i][d] += sum_j w[j][i] * y[j][d].   w [keys, kGroup], y [keys, stride], o [kGroup, stride]
// `visible` [keys], if given, tells which queries see a key: rows of queries skip the ends they do not see.
HWY_INLINE void weighted_sum(const float* w, const float* y, std::int64_t stride, std::int64_t keys,
                             const std::uint16_t* visible, float* o) {
  for (int i = 0; i < kGroup; i += kTileRows) {
    std::int64_t begin = 0, end = keys;
    if (visible != nullptr) {
      const unsigned rows = ((1u << kTileRows) - 1) << i;
      // In a window the first and last keys of a run are seen by some of the queries only; their weights for the others
      // are 0.
      while (begin < end && (visible[begin] & rows) == 0) ++begin;
      while (begin < end && (visible[end - 1] & rows) == 0) --end;
    }
    // Rows of queries as rows of A: consecutive floats of a column, one column per step.
    const LeftOperand left{w + begin * kGroup + i, 1, kGroup};  // [steps, kTileRows]
    std::int64_t d = 0;
    for (; d + kTileVectors * kLanes <= stride; d += kTileVectors * kLanes) {
      register_tile<kTileRows, kTileVectors, Sum::added>(left, {y + begin * stride + d, stride},
                                                         {o + i * stride + d, stride}, end - begin);
    }
    // Strides are multiples of 16: with 8 lanes and two vectors nothing is left, with 16 lanes maybe one vector.
    for (; d < stride; d += kLanes) {
      register_tile<kTileRows, 1, Sum::added>(left, {y + begin * stride + d, stride}, {o + i * stride + d, stride},
                                              end - begin);
    }
  }
}

// The stride as an argument of an inlined function: a constant in one of the two calls below.
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
