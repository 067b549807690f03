// Weight matrices cut into panels of columns, the right-hand operands of the tiles of dense layers.
#pragma once

#include <cstdint>

#include "etc_core/ops/linear.h"

namespace etc::ops::cpu {

inline constexpr std::int64_t kPanelCols = 192;
// Unpacked weights are packed a group of panels at a time, at most this many bytes. That is enough for any whole layer
// of the published models, and bounds the memory for an embedding table used as output layer.
inline constexpr std::int64_t kPackedBytes = 16 << 20;

// For W [k, n]: the columns of panel number `panel`; how many panels are packed at a time if a number takes `bytes`
// bytes.
std::int64_t panel_width(std::int64_t n, std::int64_t panel);
std::int64_t panel_group(std::int64_t k, std::int64_t n, std::int64_t bytes);

// Rows of W in a step of the inner dimension of an fp32 product: those of a panel (590 KB) and as many columns of x of a
// tile (197 KB) fit a second-level cache of 1 MiB. A panel of 3072 rows does not: it would come from the third level once
// per tile (GFLOP/s of one core, 3072 -> 768: 97 whole, 105 in four steps). step_depth(k) depends on k only: steps of
// equal depth, a multiple of 64; the last one may be shorter.
inline constexpr std::int64_t kMostDepth = 768;
std::int64_t step_depth(std::int64_t k);

// Columns [first_col, first_col + cols) of k rows of W, which may be stored as [columns, rows]: weight points to the
// first of the k rows; rows (out_in: columns) are `stride` numbers apart.
struct PanelBlock {
  const float* weight;
  WeightLayout layout;
  std::int64_t k, stride;
  std::int64_t first_col, cols;
};

// The distance of the rows of W [k, n] as it is stored, without gaps.
inline std::int64_t row_stride(WeightLayout layout, std::int64_t k, std::int64_t n) {
  return layout == WeightLayout::in_out ? n : k;
}

// Rows [first_row, first_row + rows) of the block.
PanelBlock rows_of(const PanelBlock& block, std::int64_t first_row, std::int64_t rows);

// Copies the block to a contiguous [k, cols].
void copy_panel(const PanelBlock& block, float* panel);

}  // namespace etc::ops::cpu
