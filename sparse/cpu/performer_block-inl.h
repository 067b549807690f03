// Building blocks of linear attention, forward and backward: products of blocks of 64 rows on the register tile, and
// the features of a block. All arrays are row-major, with features in vector lanes. Only the projection (once per call)
// and, in causal blocks, the keys' features are transposed.
//
//   rows [64, stride] · transposed projection [stride, padded]  ->  u [64, padded]  ->  exp  ->  f [64, padded]
//   sum over rows:  f (read by columns) · values [64, stride]  ->  += S [padded, stride]
//
// Highway's per-target include guard.
#if defined(SPARSE_CPU_PERFORMER_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_PERFORMER_BLOCK_INL_H_
#undef SPARSE_CPU_PERFORMER_BLOCK_INL_H_
#else
#define SPARSE_CPU_PERFORMER_BLOCK_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "etc_core/base/integers.h"
#include "sparse/cpu/group_scratch-inl.h"
#include "sparse/cpu/lanes-inl.h"
#include "sparse/cpu/register_tile-inl.h"
#include "sparse/cpu/row_arithmetic-inl.h"
#include "sparse/cpu/tile_walk.h"
#include "sparse/performer_layout.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::int64_t kBlockRows = 64;  // several register tiles of rows reuse each loaded column strip of B
static_assert(kChunkRows % kBlockRows == 0 && kBlockRows % kGroup == 0);
inline constexpr float kStabiliser = 1e-6f;  // added to the exponentials

struct BlockSize {
  std::int64_t rows, columns, steps;
};

// c[m][v] (+)= sum_k a[m][k] b[k][v]; columns is a multiple of kLineFloats. Rows are rounded up to whole register
// tiles; operands and result must have these rows.
template <Sum kSum>
HWY_INLINE void block_product(LeftOperand a, RightOperand b, TileResult c, BlockSize size) {
  constexpr std::int64_t kWide = kTileVectors * kLanes;
  std::int64_t v = 0;
  // Columns are the outer loop, so that their strip of B stays in the L1 cache for all rows.
  for (; v + kWide <= size.columns; v += kWide) {
    for (std::int64_t m = 0; m < size.rows; m += kTileRows) {
      register_tile<kTileRows, kTileVectors, kSum>({a.data + m * a.row, a.row, a.step}, {b.data + v, b.row},
                                                   {c.data + m * c.row + v, c.row}, size.steps);
    }
  }
  for (; v < size.columns; v += kLanes) {
    for (std::int64_t m = 0; m < size.rows; m += kTileRows) {
      register_tile<kTileRows, 1, kSum>({a.data + m * a.row, a.row, a.step}, {b.data + v, b.row},
                                        {c.data + m * c.row + v, c.row}, size.steps);
    }
  }
}

// to[c][r] = from[r][c].   rows and columns multiples of kGroup
HWY_INLINE void transpose(const float* from, std::int64_t rows, std::int64_t columns, float* to) {
  for (std::int64_t r = 0; r < rows; r += kGroup) {
    for (std::int64_t c = 0; c < columns; c += kGroup) {
      transpose_block(from + r * columns + c, columns, to + c * rows + r, rows);
    }
  }
}

// e^x of one number with the vector function, so that it has the same bits as a lane.
HWY_INLINE float exponential(float x) {
  return hn::GetLane(power_of_two(hn::Set(FloatTag(), x * kLog2E)));
}

// Data shared by all tasks of a call.
struct PerformerShared {
  PerformerSizes sizes;
  bool stabilised;
  float row_scale;    // s, of |x|^2
  float* projection;  // [padded, stride] times sqrt(s)
  float* turned;      // [stride, padded]

  static PerformerShared take(Arena& arena, const PerformerInputs& in) {
    PerformerShared shared{PerformerSizes(in), in.stabilised, 0.0f, nullptr, nullptr};
    shared.row_scale = square_scale(in);
    shared.projection = arena.take<float>(shared.sizes.padded * shared.sizes.stride);
    shared.turned = arena.take<float>(shared.sizes.padded * shared.sizes.stride);
    return shared;
  }

  // Copies and transposes the projection.
  void fill(const PerformerInputs& in) const {
    const float scale = projection_scale(in);
    std::fill_n(projection, sizes.padded * sizes.stride, 0.0f);
    for (std::int64_t r = 0; r < sizes.features; ++r) {
      for (std::int64_t c = 0; c < sizes.head_size; ++c) {
        projection[r * sizes.stride + c] = scale * in.projection[r * sizes.head_size + c];
      }
    }
    transpose(projection, sizes.padded, sizes.stride, turned);
  }
};

// Consecutive rows of one head, kBlockRows at most.
struct RowBlock {
  std::int64_t head, first, count;
};

// Rows of one head, zero beyond D and beyond the last row.   to [kBlockRows, stride]
HWY_INLINE void load_rows(const Rows& from, const PerformerSizes& sizes, const RowBlock& block, float* to) {
  copy_rows(from, {block.head, sizes.head_size}, block.first, block.count, to);
  std::fill_n(to + block.count * sizes.stride, (kBlockRows - block.count) * sizes.stride, 0.0f);
}

// A block of rows and its features.
struct FeatureBlock {
  float* rows = nullptr;    // x [kBlockRows, stride]
  float* values = nullptr;  // u, then f [kBlockRows, padded]
  float half[kBlockRows];   // h = |x'|^2 / 2

  static FeatureBlock take(Arena& arena, const PerformerSizes& sizes) {
    FeatureBlock block;
    block.rows = arena.take<float>(kBlockRows * sizes.stride);
    block.values = arena.take<float>(kBlockRows * sizes.padded);
    return block;
  }
};

// u and h of the loaded rows.
HWY_INLINE void project_rows(const PerformerShared& shared, std::int64_t count, FeatureBlock& block) {
  const PerformerSizes& sizes = shared.sizes;
  block_product<Sum::fresh>({block.rows, sizes.stride, 1}, {shared.turned, sizes.padded}, {block.values, sizes.padded},
                            {round_up(count, kTileRows), sizes.padded, sizes.head_size});
  for (std::int64_t i = 0; i < count; ++i) {
    const float* const row = block.rows + i * sizes.stride;  // [stride]
    block.half[i] = 0.5f * shared.row_scale * row_dot(row, row, sizes.stride);
  }
}

// The largest u of a row, without the padding beyond m.
HWY_INLINE float largest_feature(const PerformerSizes& sizes, const float* u) {
  const FloatTag d;
  const FloatVec none = hn::Set(d, -std::numeric_limits<float>::infinity());
  FloatVec largest = none;
  for (std::int64_t r = 0; r < sizes.features; r += kLanes) {
    const auto own = hn::FirstN(d, static_cast<std::size_t>(std::min<std::int64_t>(kLanes, sizes.features - r)));
    largest = hn::Max(largest, hn::IfThenElse(own, hn::LoadU(d, u + r), none));
  }
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

// Replaces u by exp(u - shift) + extra; always 0 beyond m.
HWY_INLINE void exponentials(const PerformerSizes& sizes, float shift, float extra, float* u) {
  const FloatTag d;
  const FloatVec less = hn::Set(d, shift), scale = hn::Set(d, kLog2E), more = hn::Set(d, extra);
  for (std::int64_t r = 0; r < sizes.padded; r += kLanes) {
    const std::int64_t left = std::clamp<std::int64_t>(sizes.features - r, 0, kLanes);
    const FloatVec e = hn::Add(power_of_two(hn::Mul(hn::Sub(hn::LoadU(d, u + r), less), scale)), more);
    hn::StoreU(hn::IfThenElseZero(hn::FirstN(d, static_cast<std::size_t>(left)), e), d, u + r);
  }
}

// f of queries, each with its own maximum.   best [kBlockRows]: the first feature that has the maximum; may be null
HWY_INLINE void query_features(const PerformerShared& shared, std::int64_t count, FeatureBlock& block,
                               std::int64_t* best) {
  const PerformerSizes& sizes = shared.sizes;
  project_rows(shared, count, block);
  for (std::int64_t i = 0; i < count; ++i) {
    float* const u = block.values + i * sizes.padded;  // [padded]
    const float largest = shared.stabilised ? largest_feature(sizes, u) : 0.0f;
    if (best != nullptr) best[i] = std::find(u, u + sizes.features, largest) - u;
    exponentials(sizes, block.half[i] + largest, shared.stabilised ? kStabiliser : 0.0f, u);
  }
}

// f of keys with the given maximum; rows beyond the last are 0.
HWY_INLINE void key_features(const PerformerShared& shared, std::int64_t count, float maximum, float extra,
                             FeatureBlock& block) {
  const PerformerSizes& sizes = shared.sizes;
  for (std::int64_t i = 0; i < count; ++i) {
    exponentials(sizes, block.half[i] + maximum, extra, block.values + i * sizes.padded);
  }
  std::fill_n(block.values + count * sizes.padded, (kBlockRows - count) * sizes.padded, 0.0f);
}

// A sum's two parts: [padded, stride] and [padded].
struct FeatureSum {
  float* values;
  float* ones;

  FeatureSum(float* data, const PerformerSizes& sizes) : values(data), ones(data + sizes.padded * sizes.stride) {}
};

// sum += f_iT [x_i, weight_i] over the rows of a block.   f [count, padded], x [count, stride]; weights null: 1
HWY_INLINE void add_to_sum(const PerformerSizes& sizes, std::int64_t count, const float* f, const float* x,
                           const float* weights, const FeatureSum& sum) {
  // Features are the rows of A: f is read by columns.
  block_product<Sum::added>({f, 1, sizes.padded}, {x, sizes.stride}, {sum.values, sizes.stride},
                            {sizes.padded, sizes.stride, count});
  for (std::int64_t i = 0; i < count; ++i) {
    add_row(weights == nullptr ? 1.0f : weights[i], f + i * sizes.padded, sizes.padded, sum.ones);
  }
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
