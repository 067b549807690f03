// Our own micro-kernel for fp32 tiles of dense layers: y (= or +=) x·W.
//
//     W: strips of kStripCols columns       [width / kStripCols][k][kStripCols], the last one narrower
//     4 rows x kStripCols columns of y in registers  +=  x (not packed) · strip
//
// Each number of y is summed over k in order by fused multiply-adds, in tiles of any shape. The last rows therefore need
// no padding, and a text of ten tokens costs ten rows.
//
// Four rows by 24 columns use the 16 registers of AVX2: 12 sums, 3 vectors of W and one number of x. A strip of 768 rows
// (74 KB) is read from the second-level cache once per four rows. Rows of x are not packed, because packing costs 4 to
// 10 % here. Four rows occupy at most four ways of a set of the first-level cache if their distance is a multiple of
// 4 KB, as in base and large models.
//
// GFLOP/s of one core with AVX2 (AMD EPYC, family 25, model 1, the other core busy; medians of 9), 1920 rows:
//                                    768 -> 768   768 -> 3072   3072 -> 768
//     this kernel, tiles of 192 rows       72            71            73
//     this kernel, tiles of 64 rows        68            61            64
//     oneDNN's sgemm, 64 by 192            65            65            66
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "etc_core/ops/cpu/strip_panels.cpp"
#include "hwy/foreach_target.h"
// Behind foreach_target.h, which includes this file once per instruction set.
#include <algorithm>
#include <cstring>

#include "etc_core/base/vector_dispatch.h"
#include "etc_core/ops/cpu/panel_kernel.h"
#include "hwy/highway.h"

#ifndef ETC_CORE_OPS_CPU_STRIP_PANELS_COLS_
#define ETC_CORE_OPS_CPU_STRIP_PANELS_COLS_
namespace etc::ops::cpu {
inline constexpr std::int64_t kStripCols = 24;
static_assert(kPanelCols % kStripCols == 0);
}  // namespace etc::ops::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace etc::ops::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using StripTag = hn::CappedTag<float, 8>;
using OneTag = hn::CappedTag<float, 1>;
constexpr int kStripLanes = static_cast<int>(hn::MaxLanes(StripTag()));
constexpr int kStripVectors = static_cast<int>(kStripCols) / kStripLanes;
constexpr int kStripRows = 4;
// Steps of the inner dimension per loop iteration: the number of instructions matters if another thread shares the core
// (sparse/cpu/register_tile-inl.h).
constexpr int kStripTurn = 4;

// y [kRows, kVectors * lanes] (= or +=) x [kRows, depth] · w [depth, kVectors * lanes], rows of w `w_stride` apart
template <class D, int kRows, int kVectors>
HWY_INLINE void multiply_block(const PanelTile& t, const float* x, const float* w, std::int64_t w_stride, float* y) {
  const D d;
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
  hn::Vec<D> sum[kRows][kVectors];
  HWY_UNROLL(4)
  for (int row = 0; row < kRows; ++row) {
    HWY_UNROLL(6)
    for (int v = 0; v < kVectors; ++v) {
      sum[row][v] = t.add ? hn::LoadU(d, y + row * t.y_stride + v * kLanes) : hn::Zero(d);
    }
  }
  HWY_UNROLL(kStripTurn)
  for (std::int64_t k = 0; k < t.depth; ++k) {
    hn::Vec<D> right[kVectors];
    HWY_UNROLL(6)
    for (int v = 0; v < kVectors; ++v) right[v] = hn::LoadU(d, w + k * w_stride + v * kLanes);
    HWY_UNROLL(4)
    for (int row = 0; row < kRows; ++row) {
      const hn::Vec<D> left = hn::Set(d, x[row * t.x_stride + k]);
      HWY_UNROLL(6)
      for (int v = 0; v < kVectors; ++v) sum[row][v] = hn::MulAdd(left, right[v], sum[row][v]);
    }
  }
  HWY_UNROLL(4)
  for (int row = 0; row < kRows; ++row) {
    HWY_UNROLL(6)
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[row][v], d, y + row * t.y_stride + v * kLanes);
  }
}

// Rows [row, row + kRows) times a strip of `cols` columns, whose first is column `col` of the tile.
template <int kRows>
HWY_INLINE void multiply_strip(const PanelTile& t, std::int64_t row, std::int64_t col, std::int64_t cols) {
  const float* const x = t.x + row * t.x_stride;
  const float* const w = t.panel + col * t.k + t.begin * cols;  // [depth, cols]
  float* const y = t.y + row * t.y_stride + col;
  if (cols == kStripCols) {
    // A constant stride saves an addition in the loop.
    return multiply_block<StripTag, kRows, kStripVectors>(t, x, w, kStripCols, y);
  }
  std::int64_t c = 0;
  for (; c + kStripLanes <= cols; c += kStripLanes) multiply_block<StripTag, kRows, 1>(t, x, w + c, cols, y + c);
  for (; c < cols; ++c) multiply_block<OneTag, kRows, 1>(t, x, w + c, cols, y + c);
}

void multiply_strips(const PanelTile& t) {
  const std::int64_t whole = t.rows / kStripRows * kStripRows;
  for (std::int64_t col = 0; col < t.width; col += kStripCols) {
    const std::int64_t cols = std::min(kStripCols, t.width - col);
    for (std::int64_t row = 0; row < whole; row += kStripRows) multiply_strip<kStripRows>(t, row, col, cols);
    switch (t.rows - whole) {
      case 3:
        multiply_strip<3>(t, whole, col, cols);
        break;
      case 2:
        multiply_strip<2>(t, whole, col, cols);
        break;
      case 1:
        multiply_strip<1>(t, whole, col, cols);
        break;
      default:
        break;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace etc::ops::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::ops::cpu {

namespace {

void multiply(const PanelTile& tile) {
  ETC_DISPATCH(multiply_strips)(tile);
}

void pack_strips(const PanelBlock& block, float* panel) {
  if (block.layout == WeightLayout::out_in) {
    for (std::int64_t col = 0; col < block.cols; col += kStripCols) {
      PanelBlock strip = block;
      strip.first_col += col;
      strip.cols = std::min(kStripCols, block.cols - col);
      copy_panel(strip, panel + col * block.k);
    }
    return;
  }
  // Row by row, because the rows of W are contiguous.
  for (std::int64_t i = 0; i < block.k; ++i) {
    const float* const from = block.weight + i * block.stride + block.first_col;  // [cols]
    for (std::int64_t col = 0; col < block.cols; col += kStripCols) {
      const std::int64_t cols = std::min(kStripCols, block.cols - col);
      std::memcpy(panel + col * block.k + i * cols, from + col, static_cast<std::size_t>(cols) * sizeof(float));
    }
  }
}

}  // namespace

// One tile goes through all steps: its sums, 147 KB, then stay in the second-level cache (inner dimension 3072: 95 and
// 99 % of one large oneDNN product with 8 tiles and with 1).
const PanelKernel kStripPanels{192, 64, 1, pack_strips, multiply};

}  // namespace etc::ops::cpu
#endif  // HWY_ONCE
